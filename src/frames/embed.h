/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the names and lines of a trace file's addresses into the file itself. Any SQLite can then
 * show them, even on a machine without the programs.
 *
 * Existing names remain, unless there is more information now (lines in addition to a name). So names
 * can be embedded again at any time, even if some of the programs no longer exist. A program is read
 * only if its build id, or its size and time, match the sampled one.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash_table.h"

struct symbol_frame;
struct symbol_object;

/* The progress in one file. */
struct embed {
	/* Looks an address up in the object, as symbol_frames() does, which is used if this is NULL. */
	size_t (*look_up)(void *context, const struct symbol_object *object, uint64_t address,
	                  struct symbol_frame *frames, size_t room);
	void *look_up_context;
	bool can_wait; /* for debug files from the network; and for reading all samples, to find
	                * the process that an address of generated code is of */
	int64_t stack; /* the newest row of the file's stacks that is done */
	int64_t named; /* addresses that got a name or lines */
	struct hash_table seen;
	bool has_owners;
};

void embed_begin(struct embed *embed, bool can_wait);

/* Continues for about `budget_ns`, on a connection that can write and has no open transaction; it
 * locks the file only while it stores its findings. An SQLite result: SQLITE_DONE if there are no
 * more stacks for now, SQLITE_OK if there are, otherwise an error; then nothing of this slice was
 * stored. */
int embed_some(struct embed *embed, sqlite3 *db, int64_t budget_ns);

/* For store_callbacks: turns of a few ms, without the network. */
bool embed_chore(sqlite3 *db, int64_t file);

/* Frees the memory. `db` is that of embed_some(), or NULL. */
void embed_end(struct embed *embed, sqlite3 *db);
