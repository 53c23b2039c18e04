/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address of a stack to what a person reads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct module;
struct symbol_frame;

/* The meaning of one trace file's addresses. The code that opens a file makes one, as the first
 * member of a struct with its functions' data; several may be in use at the same time.
 * process_space.h has the one of this process's own trace file. */
struct address_space {
	/* Finds the module that contains an address; NULL: there is none. Valid as long as the space. */
	const struct module *(*locate)(const struct address_space *space, uint64_t address);

	/* Returns the frames that the file itself has for the address (embed.h), like
	 * symbol_frames(); 0 if it has none. May be NULL. If they have no lines, the object's file
	 * is read, too, and the better result is used. */
	size_t (*recall)(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
	                 size_t room);

	/* Names code in no object, which a JIT compiler made; malloc'ed, NULL if it has no name or
	 * memory runs out. May be NULL. */
	char *(*name_generated)(const struct address_space *space, uint64_t address);
};

/* All texts are malloc'ed; NULL if memory runs out or, if documented, nothing is known. Any thread
 * that can wait, not in a signal handler: the first look-up in an object may fetch its debug file,
 * see symbol_fetch(). */

/* The symbol's name (mangled), else "module+0x1234" with the offset in the module's image;
 * the name that its compiler gave to generated code. NULL for any other address in no
 * known module. */
char *address_symbol(const struct address_space *space, uint64_t address);

/* "file.c:123"; without line information the path of the object. NULL for an
 * address in no known module. */
char *address_line(const struct address_space *space, uint64_t address);

/* The build id of the object that contains the address, lower-case hex; "" if it has none. NULL
 * for an address in no known module. */
char *address_build_id(const struct address_space *space, uint64_t address);

/* The functions at the address, as symbol_frames() gives them: 0 when nothing is known. */
size_t address_frames(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                      size_t room);

/* Demangled symbol of one frame for people; "0x…" when nothing is known. */
char *address_text(const struct address_space *space, uint64_t address);
