/*
 * dlsym(), for hosts that look SQLite's functions up by name (Python's ctypes, LuaJIT's
 * ffi, .NET): they get ours for those that are hooked.
 */
#ifndef QUERYPROF_HOOK_LOOKUP_H
#define QUERYPROF_HOOK_LOOKUP_H

#include "hook/import.h"

/* Fills the hook of dlsym(). `replace` gives what stands for a function that has been
 * found, NULL for one that is not hooked. False: not on this processor. */
bool lookup_hook(struct got_hook *hook, void *(*replace)(const char *symbol, const void *real));

#endif
