/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What export puts between the functions of a stack: the nodes of statements' plans (--plan), and the frames
 * of the program in its own language.
 */
#ifndef QUERYPROF_CMD_EXPORT_PLAN_H
#define QUERYPROF_CMD_EXPORT_PLAN_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vector.h"
#include "export/names.h"

/* A node and those around it, or the frames of a call stack, the innermost first. */
#define PLAN_DEPTH 52
struct plan_path {
	size_t count;
	const char *functions[PLAN_DEPTH];
};

/* Those that were read. Zero-filled at first. */
struct plan_paths {
	struct index index; /* by side, and program and node or call stack */
	VECTOR(struct plan_path *) items;
	sqlite3_stmt *path_of;
};

/* Begins to read an open file's by this SQL, export/plan.sql or export/call_frames.sql; false: db has the
 * error. */
bool plan_paths_open(struct plan_paths *paths, sqlite3 *db, const char *sql);
void plan_paths_close(struct plan_paths *paths);

/* The path of a node of the open file, one of two sides, or of the call stack `node`. Node 0: no functions.
 * An SQLite result. */
int plan_paths_find(struct plan_paths *paths, struct names *names, uint32_t side, int64_t program,
                    int64_t node, const struct plan_path **found);

void plan_paths_free(struct plan_paths *paths);

#endif
