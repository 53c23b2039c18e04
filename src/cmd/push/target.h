/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of servers that push sends to, by --format.
 */
#pragma once

#include "cmd/push/clickhouse.h"

/* The functions are described in clickhouse.h. */
struct push_target {
	const char *name;
	int (*begin)(const char *url, bool is_zstd);
	int (*read)(sqlite3 *db, const char *path, const struct push_position *since,
	            const struct push_position *until, const char *service, bool is_counted,
	            struct push_stacks *stacks, struct push_batch *batch);
	int (*send)(void);
	void (*end)(void);
	const char *(*table_name)(enum push_table table); /* for people */
};

/* NULL: there are no more. */
const char *push_target_name(size_t index);

/* `name` NULL: ClickHouse. NULL: there is none. */
const struct push_target *push_target_find(const char *name);

/* The server as state files name it; malloc'ed, NULL: no memory. */
char *push_target_describe(const struct push_target *target, const char *url);
