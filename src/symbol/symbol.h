/*
 * From an address in an ELF object to a name, a file and a line.
 *
 * elfutils' libdw reads the objects and their separate debug files, libiberty
 * demangles. Results are cached for the life of the process. Any thread, not in
 * a signal handler.
 */
#ifndef QUERYPROF_SYMBOL_SYMBOL_H
#define QUERYPROF_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The object an address lies in, see store_location. */
struct symbol_object {
	const char *path;
	const char *build_id; /* "" when unknown; a file with another one is not used */
	uint64_t file_size;   /* checked when there is no build id and it is not 0 */
	int64_t mtime_ns;
};

/* Name of the function whose extent covers the ELF virtual address, as in the
 * symbol table (mangled). A symbol covers its own size and no more. NULL when
 * none does. The string stays valid until symbol_forget(). */
const char *symbol_name(const struct symbol_object *object, uint64_t address);

/* Source file and line of the address; false when there is no line information.
 * `*file` stays valid until symbol_forget(). */
bool symbol_line(const struct symbol_object *object, uint64_t address,
                 const char **file, int *line);

/* "name" of C++ and Rust symbols in source form; malloc'ed, NULL when the name
 * is not mangled (or there is no memory). */
char *symbol_demangle(const char *name);

/* Closes the objects and drops the cache. No result may be in use. */
void symbol_forget(void);

/* fork: no lock is held by another thread in the child. */
void symbol_before_fork(void);
void symbol_after_fork(void);

#endif
