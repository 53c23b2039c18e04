/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flusher_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "collect/ring_reader.h"
#include "queryprof.h"
#include "store/control/counters.h"
#include "store/file/descriptors.h"
#include "store/read/pool.h"
#define NS_PER_MS 1000000ll
#define RETRY_FIRST_NS (100 * NS_PER_MS)
#define RETRY_LAST_NS (2000 * NS_PER_MS)
#include "store/write/lifecycle.h"

/* The size limit of a store without a file, because it uses the host's memory. */
#define MEMORY_MAX_BYTES (64 << 20)

struct flusher flusher = { .tempdir = { .lock = -1 } };

/* --- what others see ------------------------------------------------------------ */

/* Takes ownership of `sentence`; NULL: no error. */
static void show_error(char *sentence)
{
	control_lock();
	free(store_control.error);
	store_control.error = sentence;
	control_unlock();
}

/* A file opened again keeps its epoch. */
static void show_file(const char *path, int64_t identity)
{
	static uint64_t epochs;
	static int64_t newest;

	if (path && (!epochs || identity != newest)) {
		newest = identity;
		epochs++;
	}
	control_lock();
	free(store_control.open_path);
	store_control.open_path = path ? strdup(path) : NULL;
	__atomic_store_n(&store_control.epoch, path ? epochs : 0, __ATOMIC_RELEASE);
	control_unlock();
	pool_close_idle();
}

/* --- waiting for others ---------------------------------------------------------- */

void flusher_start_reading(void)
{
	pool_start();
	store_control.reading_wanted = false;
	condition_change(&store_control.changed);
}

bool flusher_is_interrupted(void)
{
	bool interrupted;

	control_lock();
	interrupted = store_control.state == STORE_STOPPING ||
	              (store_control.pauses && store_control.state == STORE_RUNNING);
	/* A waiting reader neither interrupts work nor waits for its end. */
	if (store_control.reading_wanted && !interrupted)
		flusher_start_reading();
	control_unlock();
	return interrupted;
}

uint64_t flusher_used_ring(void)
{
	return ring_head(store_control.ring) - ring_tail(store_control.ring);
}

bool flusher_ring_runs_full(void)
{
	return flusher_used_ring() > ring_bytes(store_control.ring) / 4 * 3;
}

/* While another process writes: gives up if the ring is nearly full. */
static bool give_up_waiting(void *context)
{
	(void)context;
	control_wait_for_file(true);
	return flusher_is_interrupted() || flusher_ring_runs_full();
}

/* --- opening and closing ----------------------------------------------------------- */

void flusher_set_max_bytes(int64_t max_bytes)
{
	bool is_too_much = max_bytes <= 0 || max_bytes > MEMORY_MAX_BYTES;

	flusher.file.max_bytes = flusher.table_error && is_too_much ? MEMORY_MAX_BYTES : max_bytes;
}

void flusher_set_limits(struct database_limits *limits)
{
	*limits = (struct database_limits){ .wal_bytes = retention_wal_bytes(flusher.file.max_bytes),
		                            .temporary = !flusher.settings_path };
}

void flusher_close_file(bool last)
{
	if (flusher.writer.database.db) {
		/* Readers first, because the last connection to close checkpoints the log. */
		show_file(NULL, 0);
		writer_close(&flusher.writer, last && flusher.settings_path);
	}
	free(flusher.file.path);
	flusher.file.path = NULL;
	flusher.over_bound = false;
}

/* Path of the file to open: malloc'ed, NULL with a sentence in `*error`. */
static char *make_path(char **error)
{
	int number;

	if (flusher.table_error)
		return database_memory_name();
	if (flusher.settings_path)
		return strdup(flusher.settings_path);
	if (flusher.tempdir.path && !tempdir_is_there(&flusher.tempdir))
		tempdir_remove(&flusher.tempdir);
	if (!flusher.tempdir.path) {
		number = tempdir_make(&flusher.tempdir);
		if (number) {
			*error = text_format("no temporary directory for the trace file: %s",
			                     strerror(number));
			return NULL;
		}
	}
	return text_format("%s/trace.db", flusher.tempdir.path);
}

int flusher_open_file(char **error)
{
	struct database_limits limits;
	int code;

	descriptors_fit_limit();
	if (store_control.no_file) {
		*error = text_format("%s", store_control.no_file);
		return QP_STORE;
	}
	if (!flusher.has_writer)
		flusher.has_writer = writer_init(&flusher.writer, give_up_waiting, NULL);
	if (!flusher.has_writer) {
		*error = text_format("out of memory for the flusher");
		return QP_NOMEM;
	}
	flusher.file.path = make_path(error);
	if (!flusher.file.path)
		return QP_STORE;
	flusher_set_limits(&limits);
	code = writer_open(&flusher.writer, flusher.file.path, &limits, error);
	if (code) {
		flusher_close_file(false);
		return code;
	}
	show_file(flusher.file.path,
	          database_number(flusher.writer.database.db, "SELECT identity FROM state", 0));
	return QP_OK;
}

char *flusher_refusal(void)
{
	if (!flusher.table_error)
		return NULL;
	return text_format("no trace file; samples are kept in memory (at most %d MiB), because the system "
	                   "refuses the store a separate descriptor table: %s",
	                   MEMORY_MAX_BYTES >> 20, strerror(flusher.table_error));
}

void flusher_clear_failure(void)
{
	if (flusher.failing || flusher.table_error)
		show_error(flusher_refusal());
	flusher.failing = false;
	flusher.retry_pause = RETRY_FIRST_NS;
	flusher.retry_at = 0;
}

void flusher_note_failure(char *sentence)
{
	store_count(STORE_ERRORS, 1);
	if (sentence)
		snprintf(flusher.failure, sizeof(flusher.failure), "%s", sentence);
	if (!flusher.failing)
		flusher.retry_pause = RETRY_FIRST_NS;
	show_error(sentence);
	flusher.failing = true;
	flusher.retry_at = control_now_ns() + flusher.retry_pause;
	flusher.retry_pause *= 2;
	if (flusher.retry_pause > RETRY_LAST_NS)
		flusher.retry_pause = RETRY_LAST_NS;
}

int flusher_try_file(const struct settings_of_store *wanted, char **error)
{
	struct database_limits limits = { .wal_bytes = retention_wal_bytes(wanted->max_bytes),
		                          .contention = { .give_up = give_up_waiting } };
	struct database trial;
	int code = database_open(&trial, wanted->path, &limits, error);

	if (!code)
		database_close(&trial, false);
	return code == DATABASE_LOCKED ? QP_STORE : code;
}

bool flusher_has_current_file(void)
{
	return flusher.writer.database.db && (database_is_in_memory(flusher.file.path) ||
	                                      guard_is_at(&flusher.writer.database.guard, flusher.file.path));
}

/* The process cannot reach the file by its name, because it changed its root directory or its
 * user. An open file can still be written. */
static bool is_kept_elsewhere(void)
{
	struct settings_of_store here = { .path = flusher.file.path, .max_bytes = flusher.file.max_bytes };
	char *error = NULL;
	bool kept =
		guard_is_linked(&flusher.writer.database.guard) && flusher_try_file(&here, &error) != QP_OK;

	free(error);
	return kept;
}

bool flusher_keeps_file(void)
{
	return flusher.table_error || (flusher.writer.database.db &&
	                               faccessat(AT_FDCWD, flusher.file.path, R_OK | W_OK, AT_EACCESS) &&
	                               guard_is_linked(&flusher.writer.database.guard));
}

int flusher_ensure_file(void)
{
	char *error = NULL;
	int code;

	if (flusher.writer.database.db) {
		if (flusher_has_current_file() || is_kept_elsewhere())
			return QP_OK;
		flusher_close_file(false);
	}
	code = flusher_open_file(&error);
	if (code)
		flusher_note_failure(error);
	return code;
}
