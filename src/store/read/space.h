/*
 * The file's address space as readers see it: which module an address of a trace
 * lies in. The answer to store_locate().
 */
#ifndef QUERYPROF_STORE_READ_SPACE_H
#define QUERYPROF_STORE_READ_SPACE_H

/* Forgets the modules; strings handed out are freed, too. */
void space_free(void);

void space_before_fork(void);
void space_after_fork(void);

#endif
