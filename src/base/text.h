/*
 * Texts on the heap.
 */
#ifndef QUERYPROF_BASE_TEXT_H
#define QUERYPROF_BASE_TEXT_H

/* As printf; malloc'ed, NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
