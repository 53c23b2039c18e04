/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym(), for hosts that look functions up by name (Python's ctypes, LuaJIT's ffi, .NET): they get
 * queryprof's for those that are hooked.
 */
#pragma once

#include "hook/import.h"

/* Fills the hook of dlsym(). For names that begin with `family`, `replace` gives the
 * replacement of a function that was found, NULL for one that is not hooked. False: not
 * on this processor. */
bool lookup_hook(struct import_hook *hook, const char *family,
                 void *(*replace)(const char *symbol, const void *real));
