/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a forked child has no more use for. Until its fork handlers are through it must not call
 * the allocator: one that does not look after its locks at a fork (AddressSanitizer's, a host's own)
 * may have had another thread inside, which the child has not, and the child would wait for ever.
 */
#ifndef QUERYPROF_BASE_FREE_LATER_H
#define QUERYPROF_BASE_FREE_LATER_H

#include <stddef.h>

/* Smaller memory stays for ever. */
#define FREE_LATER_MIN sizeof(void *)

/* `memory` is malloc()'s, of `size` bytes; NULL: does nothing. Its content is gone. One thread at a time, as
 * free_what_waits(). */
void free_later(void *memory, size_t size);

/* The same of a text that ends with a NUL. */
void free_text_later(char *text);

/* Frees what free_later() was called with. */
void free_what_waits(void);

#endif
