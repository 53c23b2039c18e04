/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a forked child no longer needs. Until its fork handlers have finished it must not call
 * the allocator: in one that does not handle its locks at a fork (AddressSanitizer's, a host's own)
 * another thread may have been inside, which does not exist in the child, and the child would wait
 * forever.
 */
#pragma once

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
