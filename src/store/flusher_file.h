/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that the flusher writes. It is made, opened and checked here, and after an error closed and opened
 * again.
 */
#pragma once

#include <limits.h>

#include "store/control/control.h"
#include "store/file/database.h"
#include "store/file/tempdir.h"
#include "store/write/losses.h"
#include "store/write/retention.h"
#include "store/write/writer.h"
#include "store/written_file.h"

/* Belongs to the thread; others access it only when there is no thread. */
struct flusher {
	struct writer writer;
	bool has_writer;
	struct retention retention;
	struct tempdir tempdir;
	int table_error;          /* errno of descriptors_separate(): the store is in memory */
	struct written_file file; /* the open file, with its path (malloc'ed) */
	char *settings_path;      /* of the current settings; NULL: temporary */
	char settings_text[PATH_MAX];
	int64_t interval_ns;
	bool does_chores;
	struct losses losses;
	struct refusals refusals; /* that are noted there already */
	bool failing, over_bound;
	char failure[LOSS_REASON_SIZE]; /* the newest sentence */
	int64_t retry_at, retry_pause;
	int64_t reaped_at;
};
extern struct flusher flusher;

/* Path and limits from the settings. A QP_ code or DATABASE_LOCKED, `*error`. */
int flusher_open_file(char **error);

/* `last`: nothing more will be written to it. */
void flusher_close_file(bool last);

/* Ensures that the file is open, and still the one that its path names. A QP_ code, or
 * DATABASE_LOCKED if it is not available. */
int flusher_ensure_file(void);

/* Whether the new file can be used; it exists afterwards. */
int flusher_try_file(const struct settings_of_store *wanted, char **error);

/* Whether a file is open and its path still names it. */
bool flusher_has_current_file(void);

/* Why the store is in memory (malloc'ed); NULL: it is not. */
char *flusher_refusal(void);

void flusher_set_max_bytes(int64_t max_bytes);
void flusher_set_limits(struct database_limits *limits);

/* Whether the open file must stay open at a fork: it is in memory, or the process has given up the
 * right to open it again. */
bool flusher_keeps_file(void);

/* Records a failure and takes over its sentence: it is shown, and the file is not tried again
 * before a growing pause. */
void flusher_note_failure(char *sentence);

/* Makes the next try a first one. */
void flusher_clear_failure(void);

/* Starts the reading thread that a caller waits for. Releases the lock meanwhile. */
void flusher_start_reading(void) REQUIRES(store_control.lock);

/* Whether a fork or the end waits for the flusher. */
bool flusher_is_interrupted(void);

uint64_t flusher_used_ring(void);

/* Whether waiting for another process must end. By then, intervals are longer, see ring_gets_full() of
 * handler/budget.c. */
bool flusher_ring_runs_full(void);
