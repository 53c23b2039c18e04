/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines that look-ups found once, in the user's cache folder, so that a short
 * program's recording opens no debug information again. The file may be deleted at any time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_cache;
struct symbol_frame;
struct symbol_object;

/* $XDG_CACHE_HOME/queryprof-names, or ~/.cache/queryprof-names, which is made if need be. NULL: there
 * is none, or it is not this user's alone. */
struct name_cache *name_cache_open(void);

/* Calls symbol_fetch() and symbol_frames(), but for addresses that the cache knows. For frames/embed.h. The
 * strings stay valid until the cache is closed. */
size_t name_cache_frames(void *cache, const struct symbol_object *object, uint64_t address,
                         struct symbol_frame *frames, size_t room);

/* Stores what is new. NULL: does nothing. */
void name_cache_close(struct name_cache *cache);
