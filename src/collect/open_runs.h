/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that have not ended, in memory that another process also holds (handover/shared_ring.h). An
 * open cursor that nobody steps has no sample. When its process has ended, in whatever way, the other
 * process writes what is known of it.
 *
 * The entry of a run's place is permanent. Each beginning and each call changes some words of it
 * (wire/open_run.h), and a new statement describes itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collect/shared_entries.h"
#include "wire/open_run.h"

struct ring;

/* Its entries are of struct open_run_entry, which begins with a struct open_run. */
extern struct shared_entries open_runs;

/* --- in the process of the runs -------------------------------------------------------------------- */

struct open_run_description {
	const char *text, *database, *library; /* NULL: none */
	uint64_t publish_after_ns;             /* UINT64_MAX: never */
	bool has_threads;                      /* its time between calls is not known */
};

/* Describes the entry's run, which is hidden. `start`: it runs inside another one. */
void open_runs_describe(struct open_run *run, const struct run_start *start,
                        const struct open_run_description *text);

/* The user's id of the entry's run, which is hidden. */
void open_runs_write_id(struct open_run *run, const char *query_id);

/* SQLite has prepared its statement again. */
void open_runs_forget_bytecode(struct open_run *run);

/* The user has given a query an id, by which the file knows it instead of by its key. */
void open_runs_note_user_id(void);

/* --- in the other process, which has a copy ------------------------------------------------------------ */

/* The data of the run with this key. Texts are in the copy; NULL: not known. False: the run is not open. */
struct open_run_texts {
	const char *text, *database, *library, *query_id;
	bool is_cut; /* the text */
};
bool open_runs_find(void *memory, struct query_key key, struct open_run_texts *texts);

/* The next open run from number `*from` on; advances `*from` past it. False: there is no further one. */
struct open_run_view {
	struct query_key key, initial, parent;       /* a zero parent: it is inside no other run */
	uint64_t start_ns, entered_ns, execution_ns; /* as in struct open_run */
	uint32_t thread_id;
	bool has_threads;
	struct open_run_texts texts;
};
bool open_runs_next(void *memory, uint32_t *from, struct open_run_view *view);

/* How long the session's open runs have been inside calls. */
uint64_t open_runs_executed_ns(const void *memory, uint32_t session, uint64_t until_ns);

/* Whether a run is, or was, open long enough for a row at `until_ns` (CLOCK_MONOTONIC). */
bool open_runs_has_remains(const void *memory, uint64_t until_ns);

bool open_runs_had_user_ids(const void *memory);

/* Writes each of them into the ring, once for each copy. False: the ring has no space for the next one. */
bool open_runs_hand_over(void *memory, uint64_t until_ns, struct ring *ring);
