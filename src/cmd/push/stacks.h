/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a trace file for ClickHouse, each made once: three arrays of a row in RowBinary, with
 * addresses, functions and lines.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vector.h"
#include "export/clickhouse.h"

struct names;
struct address_space;

struct push_stacks {
	sqlite3_stmt *read;
	struct names *names;
	struct index index;
	VECTOR(struct bytes *) list;
};

/* For an open trace file. False after a complaint. */
bool push_stacks_begin(struct push_stacks *stacks, sqlite3 *db, const struct address_space *space);
void push_stacks_end(struct push_stacks *stacks);

/* A stack that is not in the file is empty. An SQLite result. */
int push_stacks_find(struct push_stacks *stacks, int64_t id, const struct bytes **found);
