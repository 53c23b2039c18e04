/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a trace file as arrays of addresses, functions and lines, each made once.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vector.h"

struct names;
struct address_space;

struct push_stack {
	int64_t id;
	size_t count;
	uint64_t *addresses;
	const char **functions; /* the one whose code it is; names keep the texts */
	const char **lines;     /* file:line, or the module */
	uint64_t block;         /* for whom the numbers below are */
	uint32_t *words;        /* of functions, then of lines */
};

struct push_stacks {
	sqlite3_stmt *read;
	struct names *names;
	struct index index;
	VECTOR(struct push_stack *) list;
};

/* For an open trace file. False after a complaint. */
bool push_stacks_begin(struct push_stacks *stacks, sqlite3 *db, const struct address_space *space);
void push_stacks_end(struct push_stacks *stacks);

/* A stack that is not in the file is empty. An SQLite result. */
int push_stacks_find(struct push_stacks *stacks, int64_t id, struct push_stack **found);
