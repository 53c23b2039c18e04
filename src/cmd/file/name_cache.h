/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines that earlier look-ups found, in the user's cache folder, so that recording a short
 * program does not open debug information again. The files may be deleted at any time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct name_cache;
struct symbol_frame;
struct symbol_object;

/* $XDG_CACHE_HOME/queryprof-names, or ~/.cache/queryprof-names, which is made if necessary. NULL: it does not
 * exist, or other users have access to it. */
struct name_cache *name_cache_open(void);

/* Calls symbol_fetch() and symbol_frames(), except for addresses in the cache. For frames/embed.h. The
 * strings stay valid until the cache is closed. */
size_t name_cache_frames(void *cache, const struct symbol_object *object, uint64_t address,
                         struct symbol_frame *frames, size_t room);

/* Stores what is new. NULL is ignored. */
void name_cache_close(struct name_cache *cache);
