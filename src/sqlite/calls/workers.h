/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker threads of SQLite's own.
 */
#pragma once

#include "hook/import.h"
#include "sqlite/library/host.h"

/* The hook by which the threads that the library starts work for the query of their maker. */
struct import_hook workers_hook(const struct host_library *library);
