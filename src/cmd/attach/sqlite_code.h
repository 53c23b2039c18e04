/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite libraries of another process, and where their own code finds the fields of a statement.
 * SQLite's structures differ between versions and builds. Its short functions show the offsets: sqlite3_sql()
 * loads the text, sqlite3_db_handle() the connection, and sqlite3_step() begins by keeping its argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "cmd/attach/target.h"

/* Where a function keeps its first argument. */
struct kept_argument {
	enum { KEPT_UNKNOWN, KEPT_IN_REGISTER, KEPT_ON_STACK } kind;
	unsigned number; /* of the register, as DWARF numbers them; on the stack: of the one below */
	int32_t offset;  /* on the stack: from that register */
};

struct sqlite_code {
	const struct target_object *object;
	uint64_t step, step_end;   /* sqlite3_step() */
	int32_t text, connection;  /* offsets in a statement; -1: not known */
	struct kept_argument kept; /* by sqlite3_step() */
};

struct sqlite_codes {
	VECTOR(struct sqlite_code) list;
	size_t nameless; /* objects that contain SQLite without the names of its functions */
	const struct target_object *nameless_object; /* one of them */
};

/* Reads the process's memory and, for programs that contain SQLite, their files. False: out of memory. Free
 * it in both cases. */
bool sqlite_codes_find(struct sqlite_codes *codes, const struct target *target);
void sqlite_codes_free(struct sqlite_codes *codes);

/* The library whose sqlite3_step() contains the address; NULL: none does. */
const struct sqlite_code *sqlite_codes_step_at(const struct sqlite_codes *codes, uint64_t address);

/* The offset at which the function loads its result from its argument; -1: it does more than that. */
int32_t sqlite_code_loaded_offset(const unsigned char *code, size_t size);

/* Where the function keeps its argument across calls. */
struct kept_argument sqlite_code_kept(const unsigned char *code, size_t size);
