/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a SQLite that is linked into a program or a module, stripped or not.
 *
 * There are no names, but SQLite has two tables. `aSyscall` of its layer for Unix names system calls
 * in writable data: "open", "close", "access", each with a function. It shows that a SQLite is here,
 * and where its code is. `sqlite3Apis`, the routines for extensions, has the address of every
 * function of the interface. In a program at a fixed address it may be anywhere in the constants, but
 * the code near the first finding, in which sqlite3_load_extension() names it, gives the address. A
 * candidate for the table is accepted only after a strict check.
 *
 * Nothing is called or written, and no lock is taken: it runs inside the callback of
 * dl_iterate_phdr(), once the object is relocated. Also compiled into the preload.
 */
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "sqlite/static/object.h"

struct static_table {
	const uintptr_t *routines; /* a struct sqlite3_api_routines, as long as its version has it */
	size_t count;              /* words of it that are functions or 0 */
	uint32_t version;          /* 3053004 */
};

enum static_found {
	STATIC_NOTHING,
	STATIC_NO_TABLE, /* a SQLite that loads no extensions, and so has no table */
	/* One whose table was not found. Where another library has the same names, the loader may have made
	 * the table lead there. */
	STATIC_UNKNOWN_TABLE,
	STATIC_TABLE,
};

#define STATIC_TABLES_MAX 4 /* in one object */

/* Searches one object. Writes the findings to `tables` and `*count`. */
enum static_found static_find(const struct dl_phdr_info *info, struct static_object *object,
                              struct static_table tables[STATIC_TABLES_MAX], size_t *count);
