/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a forked child has no more use for. Until its fork handlers are through it must not ask the
 * allocator for anything: one that does not look after its locks at a fork (AddressSanitizer's, a host's own)
 * may have had another thread inside, which the child has not, and the child would wait for ever.
 */
#ifndef QUERYPROF_BASE_FREE_LATER_H
#define QUERYPROF_BASE_FREE_LATER_H

/* Of malloc(); NULL: does nothing. What it held is gone. One thread at a time, as free_what_waits(). */
void free_later(void *memory);

/* Frees what free_later() was called with. */
void free_what_waits(void);

#endif
