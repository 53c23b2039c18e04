/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees the host's calls of SQLite: replaces the functions that run statements by queryprof's wrappers
 * (wrappers.h), in every SQLite library found. The hooks of hook/ are installed with them.
 */
#pragma once

#include <stdbool.h>

#include "sqlite/library/host.h"

/* Hooks the library, one of host_libraries, in every object that calls it. Again when
 * objects have come since; cheap when none has. True when the host's steps can be seen
 * now; false: use the trace callback for connections opened now. */
bool hooks_install(const struct host_library *library);

/* Hooks all libraries that are known, in what objects have come since. Never waits: safe
 * while the loader loads. A thread that is at it already looks again. */
void hooks_follow(void);

/* No slot leads to queryprof any more; hooks_follow() installs the hooks again. Takes no lock of the
 * loader's, and no memory. */
void hooks_restore(void);
