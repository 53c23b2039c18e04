/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of what is known of pages: zeroed, never unmapped, and zero again in a forked child, whose
 * connections read everything anew. So a child never reports what its parent has counted, and nothing is torn
 * in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sqlite/pages/page_files.h"

/* For all databases of the process. Further pages are of unknown b-trees then. */
#define PAGE_MEMORY_MOST (64u << 20)

/* What is known of the process's files. NULL: no memory, or the kernel (before Linux 4.14) cannot clear it in
 * a child. */
struct page_files *page_memory_files(void);

/* The same, NULL if nothing has been counted yet. */
struct page_files *page_memory_known_files(void);

/* More than half is taken: the rest is for what is known of pages. */
bool page_memory_is_scarce(void);

/* A multiple of 64 bytes, aligned to as many. NULL: no more. Any thread. */
void *page_memory_allocate(size_t size);
