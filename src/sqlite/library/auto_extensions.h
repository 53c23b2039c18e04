/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The automatic extensions of a SQLite library, which it calls for each connection that is opened.
 *
 * Those of the host may rely on what the host does around its own openings: a lock, a thread-local
 * pointer. SQLite has no interface to list them, but it keeps them in an array, and a structure of
 * its data has their number and the array. queryprof finds it by registering an extension of its own
 * for a moment.
 */
#pragma once

#include "sqlite/library/host.h"

/* An extension of queryprof, whoever registers it. There are at most OWN_EXTENSIONS_MAX. Idempotent. */
#define OWN_EXTENSIONS_MAX 3
void auto_extensions_add_own(void (*extension)(void));
bool auto_extensions_has_own(void (*extension)(void));

/* Whether opening a connection calls no code of the host's. False, too, if the structure is not found. */
bool auto_extensions_are_own(const struct host_library *library);
