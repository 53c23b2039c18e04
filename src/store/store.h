/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file and the thread that fills it.
 *
 * The flusher thread drains the ring into a private SQLite file through its own copy of SQLite
 * (linked in, not visible outside), independent of the host's SQLite, its settings, memory limits and
 * locks. The host never notices a failure: records that cannot be written are counted as lost,
 * system.metrics shows the reason, and storing continues when the cause has disappeared.
 *
 * The schema is sql/schema/store_schema.sql. All functions are safe on any thread outside the
 * handler. Call none while holding a lock of the host that the flusher could need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/control/control.h"
#include "store/control/counters.h"
#include "store/read/reader.h"
#include "store/read/space.h"

struct ring;

struct store_config {
	const char *path;  /* NULL or "": a private temporary file */
	int64_t max_bytes; /* of the file and its WAL; 0: no limit */
	int64_t flush_interval_ns;
	bool does_chores;
	bool is_elsewhere; /* another process reads the ring (store/collector.h), and stores */
};

/* Before store_init(). */
void store_set_chore(store_chore chore);

/* Remembers where to store. The first record creates the file, and store_start() the flusher (store_open()
 * creates both immediately). 0 or an errno value. */
int store_init(struct ring *ring, const struct store_config *config);

/* After store_init(), before store_shutdown(). */
bool store_is_started(void);

/* Starts the flusher thread if it does not run yet. A thread that is about to write the first
 * record, of the process or of a forked child, calls this first, on an ordinary thread. It costs
 * one relaxed load once the flusher runs, so call it at every query. store_init() does not do it,
 * so that a process without queries keeps its single thread. store_drain(), store_select() and
 * store_configure() do. */
void store_start(void);

/* Opens the file now, to detect errors: 0, or a QP_ code with a message in `*error` (free() it). Refuses a
 * newer schema or a foreign file, and leaves the file unchanged. */
int store_open(char **error);

/* Called before the process gives up rights: opens the file now if possible, so that later writes use the
 * open file. Does nothing in a child of vfork(). */
void store_open_ahead(void);

/* Applies a new configuration. Records in the ring go to the old file first. On failure (as for store_open)
 * the old configuration stays in force. */
int store_configure(const struct store_config *config, char **error);

/* Stores or counts as lost everything committed to the ring before the call. Waits at most `timeout_ms`;
 * false after that. */
bool store_drain(int timeout_ms);

/* The same; false also if `wait` gave up. */
bool store_drain_waiting(const struct store_wait *wait);

/* Whether another process, or a reader, has the file, so that the flusher has waited for it since
 * it last stored. */
bool store_waits_for_file(void);

/* For _exit(), in the process itself: tries for a second to store the records in the ring. May be
 * called in a signal handler. */
void store_drain_for_exit(void);

/* Call it before the process's first thread ends, if the process continues. It ends with its last thread,
 * which must not be the flusher: from now on a thread watches for that. */
void store_leader_ends(void);

/* Drains, closes, and removes the private temporary file. store_init() starts
 * again. */
void store_shutdown(void);

/* Ends the store like store_shutdown(), and prevents threads from then on, also in forked
 * children, because the host forbids their system calls. store_error() returns `why`. If another
 * process stores, it continues. */
void store_confine(const char *why);

/* Reverts store_confine(). Before store_init(). */
void store_confine_no_more(void);

/* The file in use (a copy, free() it); NULL if none is open. */
char *store_path(void);

/* Why storing fails now: a copy, free() it; NULL if it works. */
char *store_error(void);

/* --- fork ----------------------------------------------------------------- */

/* before: no connection of the store is open afterwards (bounded wait; a reader that
 * does not end in time leaves the child without a store). */
void store_before_fork(void);
void store_after_fork_parent(void);
void store_after_fork_child(void);

/* Call it before that, if another process reads the parent's ring: the child uses its own. */
void store_adopt_ring_in_child(struct ring *ring);
