/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What export inserts between the functions of a stack: the nodes of statements' plans (--plan), and the
 * frames of the program in its own language.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vector.h"
#include "export/names.h"

/* A node and its enclosing nodes, or the frames of a call stack, innermost first. */
#define FRAME_PATH_DEPTH 52
struct frame_path {
	size_t count;
	const char *functions[FRAME_PATH_DEPTH];
};

/* The paths read so far. Initially zero-filled. */
struct frame_paths {
	struct index index; /* by side, and program and node or call stack */
	VECTOR(struct frame_path *) items;
	sqlite3_stmt *path_of;
};

/* Starts to read paths from an open file by this SQL, export/plan.sql or export/call_frames.sql; false: db
 * has the error. */
bool frame_paths_open(struct frame_paths *paths, sqlite3 *db, const char *sql);
void frame_paths_close(struct frame_paths *paths);

/* The path of a node in the open file, one of two sides, or of the call stack `node`. Node 0: no functions.
 * An SQLite result. */
int frame_paths_find(struct frame_paths *paths, struct names *names, uint32_t side, int64_t program,
                     int64_t node, const struct frame_path **found);

void frame_paths_free(struct frame_paths *paths);
