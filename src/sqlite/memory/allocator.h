/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocations of SQLite: the methods of its allocator, whichever the host has configured, are replaced
 * in its global configuration, as the methods of its files are in their tables. So a SQLite inside a program
 * is followed as a shared library is, and no other code of the process.
 *
 * SQLite has no function that returns the address of its configuration. It is found in the library's data:
 * the methods of the allocator, of mutexes and of the page cache follow each other there.
 */
#pragma once

#include "sqlite/library/host.h"

/* From now on the library's allocations are sampled, with the setting query_profiler_memory_sample_bytes.
 * While it is off, nothing happens. SQLite has been initialised. */
void allocator_follow(const struct host_library *library);

/* All libraries get their methods back. */
void allocators_restore(void);
