/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a copy of SQLite inside the program or a module as if it were a shared library.
 */
#pragma once

#include "sqlite/library/host.h"
#include "sqlite/static/copies.h"

/* Adopts the copy and patches it, before it has a connection. `*known`: it was adopted before.
 * NULL, or the reason for failing (malloc'ed, "" without memory). One thread at a time. */
char *static_adopt(const struct static_copy *copy, bool *known);

/* Patches the library of an extension's host, whose calls cannot be seen otherwise. Stops the
 * other threads meanwhile. On failure, `unpatched` has the reason. */
void static_adopt_late(const struct host_library *library);
