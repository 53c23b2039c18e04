/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address in an ELF object to a name, a file and a line.
 *
 * sources.c lists where names and lines come from. elfutils reads the files; the first
 * look-up loads it. Results stay in a cache for the life of the process. Any thread may
 * call these functions, but no signal handler.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/demangle.h"
#include "symbol/extent.h"
#include "symbol/frame.h"
#include "symbol/object.h"

/* Name of the function whose extent covers the ELF virtual address, as in the
 * symbol table (mangled). A symbol covers its own size and no more. NULL when
 * none does. The string stays valid until symbol_forget(). */
const char *symbol_name(const struct symbol_object *object, uint64_t address);

/* Source file and line of the address; false when there is no line information.
 * `*file` stays valid until symbol_forget(). */
bool symbol_line(const struct symbol_object *object, uint64_t address, const char **file, int *line);

/* Whether the object has names and no lines, and all of its names are read: then symbol_name(),
 * symbol_frames() and symbol_each() open no file any more. */
bool symbol_is_read(const struct symbol_object *object);

/* Calls `each` for all functions that symbol_name() knows in the object, with the ELF
 * virtual addresses of their code: [start, end). In no order; one function may have
 * several pieces. The name stays valid until symbol_forget(). */
void symbol_each(const struct symbol_object *object,
                 void (*each)(void *context, const char *name, uint64_t start, uint64_t end), void *context);

/* The functions at the address, what was inlined into what: the innermost one
 * first, whose line is that of symbol_line(), then each with the line of the call
 * that was inlined into it, the function that has the code last. Where there is no
 * DWARF that is just symbol_name(). Returns the number of frames, at most `room`
 * (the innermost ones are left out then); 0 when nothing is known. The strings stay
 * valid until symbol_forget(). */
size_t symbol_frames(const struct symbol_object *object, uint64_t address, struct symbol_frame *frames,
                     size_t room);

/* The same, and the addresses around this one that have the same frames. */
size_t symbol_frames_around(const struct symbol_object *object, uint64_t address, struct symbol_frame *frames,
                            size_t room, struct extent *extent);

#define SYMBOL_DEBUG_PATH "/usr/lib/debug"

/* Sets the folders of separate debug files, separated by colons; SYMBOL_DEBUG_PATH at
 * start. Later look-ups search there; results that were returned stay valid. False: no
 * memory, nothing changed. */
bool symbol_set_debug_path(const char *folders);

const char *symbol_debug_path(void);

/* Fetches the object's debug file from the debuginfod servers that the environment names
 * (DEBUGINFOD_URLS), if there is none here. Does nothing after the first look-up in the
 * object. May take as long as debuginfod.h says, so it is for threads that can wait. No
 * other function of this header uses the network. */
void symbol_fetch(const struct symbol_object *object);

/* Where the names and lines of one object come from, for people. */
struct symbol_description {
	const char *names_from; /* the best of the sources that gave names; NULL: none did */
	const char *lines_from; /* NULL: there are no lines */
	char why_not[256];      /* why names of local functions, or lines, are missing; "": they are not */
};

/* Describes the object at `path`. Looks into all sources as the first look-ups of a name
 * and a line would, except that nothing is fetched. An object without a build id is taken
 * as its file is now. False: no memory. */
bool symbol_describe(const char *path, const char *build_id, struct symbol_description *description);

/* Empties the cache and closes its objects, for tests. No result may be in use. */
void symbol_forget(void);
