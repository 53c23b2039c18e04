/*
 * From an address in an ELF object to a name, a file and a line.
 *
 * Names come from the symbol tables of the objects and of their separate debug
 * files (and, of stripped ones, from what proves a name: entry.c, archive.c), lines from their DWARF, both
 * through elfutils, which is loaded when the first name is asked for; libiberty demangles. Results are cached
 * for the life of the process. Any thread, not in a signal handler.
 */
#ifndef QUERYPROF_SYMBOL_SYMBOL_H
#define QUERYPROF_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/demangle.h"
#include "symbol/frame.h"
#include "symbol/object.h"

/* Name of the function whose extent covers the ELF virtual address, as in the
 * symbol table (mangled). A symbol covers its own size and no more. NULL when
 * none does. The string stays valid until symbol_forget(). */
const char *symbol_name(const struct symbol_object *object, uint64_t address);

/* Source file and line of the address; false when there is no line information.
 * `*file` stays valid until symbol_forget(). */
bool symbol_line(const struct symbol_object *object, uint64_t address, const char **file, int *line);

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

#define SYMBOL_DEBUG_PATH "/usr/lib/debug"

/* Folders with separate debug files, separated by colons: SYMBOL_DEBUG_PATH unless
 * told otherwise. Questions from now on are answered with what is there; results that
 * were given stay valid. False: no memory, nothing changed. */
bool symbol_set_debug_path(const char *folders);

/* Where the environment names debuginfod servers (DEBUGINFOD_URLS), and no debug file
 * of the object is here: gets it from there, before the first question about the
 * object; afterwards it does nothing. May take as long as debuginfod.h says, so it is
 * for threads that can wait. Nothing else in this header ever asks the network. */
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

/* Closes the objects and drops the cache. No result may be in use. */
void symbol_forget(void);

/* fork: no lock is held by another thread in the child. */
void symbol_before_fork(void);
void symbol_after_fork_parent(void);
void symbol_after_fork_child(void);

#endif
