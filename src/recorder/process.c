/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qp_init(), qp_shutdown(), and fork. The parts on a sample's way are started from its end backwards,
 * so that each writer finds its reader in place, and stopped from its beginning.
 */
#include "recorder/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory_headroom.h"
#include "base/own_process.h"
#include "base/switch_flag.h"
#include "collect/ledger_reader.h"
#include "recorder/confined.h"
#include "handover/handover.h"
#include "handover/shared_ring.h"
#include "handover/storing.h"
#include "hook/confine.h"
#include "hook/exit.h"
#include "hook/rights.h"
#include "label/sets.h"
#include "modules/modules.h"
#include "process/start.h"
#include "query/calibrate.h"
#include "query/statement_stats.h"
#include "recorder/ring_size.h"
#include "span/context.h"
#include "span/site.h"
#include "settings/settings.h"
#include "sqlite/locks/wal.h"
#include "sqlite/pages/page_io.h"
#include "sqlite/runs/runs.h"
#include "sqlite/session/labels.h"
#include "sqlite/session/recording.h"
#include "sqlite/session/setting_change.h"
#include "timers/quiesce.h"
#include "timers/threads.h"

static void start_was_cut(void);
LOCK_DEFINE(lock, LOCK_PROCESS, .lost = start_was_cut, .in_child = wal_forget_sums);

void process_flush_sums(void)
{
	wal_flush_all();
	page_io_flush_all();
}

/* All that is recorded is stored before the process ends in its own way, too. A child of vfork() has its
 * parent's memory, traces included. */
static void process_ends(void)
{
	if (!own_process_is_here())
		return;
	contexts_before_end();
	process_flush_sums();
	storing_here()->process_ends();
}

/* exit(): connections that are closed later, by destructors of libraries that were loaded before, are not
 * seen. */
__attribute__((destructor)) static void flush_at_exit(void)
{
	if (own_process_is_here())
		process_flush_sums();
}

static void thread_ends(void)
{
	storing_here()->first_thread_ends();
}

static const struct exit_callbacks exit_callbacks = {
	.process_ends = process_ends,
	.thread_ends = thread_ends,
};

static bool running;
static struct ring *ring; /* atomic; made once: handlers may hold it for ever */

bool process_running(void)
{
	return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

const struct ring *process_ring(void)
{
	return __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
}

/* Mostly it is where the parent's was. */
static void adopt_in_child(struct ring *own)
{
	__atomic_store_n(&ring, own, __ATOMIC_RELEASE);
	storing_here()->adopt_ring_in_child(own);
	sampler_adopt_ring_in_child(own);
}

static void rights_change(void)
{
	if (own_process_is_here() && (process_running() || session_start_recording()))
		storing_here()->open_ahead();
}

static bool runs_when_confined(void)
{
	return process_running() || (session_start_recording() && process_running());
}

static void stop_when_confined(void)
{
	__atomic_store_n(&running, false, __ATOMIC_RELEASE);
	sampler_stop();
	sampler_quiesce();
}

static void start_after_refusal(void);

static const struct confined_process confined_process = {
	.is_running = runs_when_confined,
	.stop = stop_when_confined,
	.start_again = start_after_refusal,
};

/* The hooks come with the first library, which may be long before qp_init(). */
__attribute__((constructor)) static void follow_process(void)
{
	exit_follow(&exit_callbacks);
	handover_on_fork(adopt_in_child);
	rights_follow(rights_change);
	confined_follow(&confined_process);
}

/* What a start has changed: all of it stays, or nothing. */
enum { CHANGED_PATH, CHANGED_BYTES, CHANGED_INTERVAL, CHANGED_RING, CHANGES };
static const char *const names[CHANGES] = { "trace_log_path", "trace_log_max_bytes",
	                                    "trace_log_flush_interval_ms", "trace_log_ring_bytes" };
static char *before[CHANGES]; /* malloc'ed values, NULL: not changed; under `lock` */

static int change(int which, const char *value, char **error)
{
	int code;

	before[which] = settings_get(NULL, names[which]);
	code = before[which] ? session_set(NULL, names[which], value, SETTING_FROM_C, error) : QP_NOMEM;
	if (code) {
		free(before[which]);
		before[which] = NULL;
	}
	return code;
}

static void apply_changes(bool is_kept)
{
	for (int i = 0; i < CHANGES; i++) {
		char *error = NULL;

		/* A ring that has been made stays as large as it is. */
		if (before[i] && !is_kept && (i != CHANGED_RING || !ring))
			session_set(NULL, names[i], before[i], SETTING_FROM_C, &error);
		free(error);
		free(before[i]);
		before[i] = NULL;
	}
}

static int apply_config(const qp_config *config)
{
	static const size_t offsets[CHANGES] = { [CHANGED_BYTES] = offsetof(qp_config, trace_log_max_bytes),
		                                 [CHANGED_INTERVAL] =
		                                         offsetof(qp_config, trace_log_flush_interval_ms),
		                                 [CHANGED_RING] = offsetof(qp_config, trace_log_ring_bytes) };
	char *error = NULL;
	int code = QP_OK;

	if (config->size < offsetof(qp_config, trace_log_path) + sizeof(config->trace_log_path))
		return error_set(QP_INVALID, "qp_config.size = %zu: set it to sizeof(qp_config), %zu",
		                 config->size, sizeof(*config));
	if (config->trace_log_path)
		code = change(CHANGED_PATH, config->trace_log_path, &error);
	for (int i = CHANGED_BYTES; !code && i < CHANGES; i++) {
		int64_t value;
		char text[24];

		if (config->size < offsets[i] + sizeof(value))
			break;
		memcpy(&value, (const char *)config + offsets[i], sizeof(value));
		if (!value)
			continue;
		snprintf(text, sizeof(text), "%lld", (long long)value);
		code = change(i, text, &error);
	}
	return code ? error_detach(code, error, "the configuration was refused") : QP_OK;
}

static bool has_ended; /* the command that had the ring */

/* A QP_ code. */
static int make_ring(void)
{
	char why[MEMORY_SENTENCE_SIZE];
	const size_t bytes = ring_size();
	struct ring *made;

	if (session_recording() && !memory_has_headroom(shared_ring_size(bytes) + MEMORY_OF_DATA, why))
		return error_set(QP_NOMEM, "%s", why);
	made = ring ? handover_ring_again(ring, bytes) : handover_ring(bytes);
	if (!made)
		return error_set(QP_NOMEM, "no memory for a ring of %zu bytes: %s", bytes, strerror(errno));
	ring_size_fix();
	if (ring) {
		statement_stats_reset_in_child();
		ledger_reset_in_child();
	}
	__atomic_store_n(&ring, made, __ATOMIC_RELEASE);
	has_ended = false;
	return QP_OK;
}

static int start(const qp_config *config)
{
	int code, error;

	if (confined_refusal())
		return error_set(QP_SYSTEM, "%s", confined_refusal());
	confine_inspect();
	settings_init();
	if (config && (code = apply_config(config)))
		return code;
	if ((!ring || has_ended) && (code = make_ring()))
		return code;
	if (handover_is_refused())
		return error_set(QP_SYSTEM, "its ring cannot be handed over to `queryprof record`: %s",
		                 handover_is_refused());
	if ((error = storing_here()->start(ring, handover_is_done())))
		return error_set(QP_SYSTEM, "the store cannot be started: %s", strerror(error));
	if (config && config->trace_log_path) {
		char *sentence = NULL;

		code = storing_here()->open(&sentence);
		if (code) {
			storing_here()->stop();
			return error_detach(code, sentence, "the trace file cannot be opened");
		}
	}
	if ((error = sampler_init(ring))) {
		storing_here()->stop();
		return error_set(QP_SYSTEM, "sampling cannot be started: %s", strerror(error));
	}
	switch_flag_begin();
	calibrate_watch_cost();
	session_labels_follow(NULL, NULL);
	label_sets_publish();
	sites_publish_again();
	return QP_OK;
}

/* Another thread was starting or stopping when this child was forked. */
static void start_was_cut(void)
{
	__atomic_store_n(&running, false, __ATOMIC_RELEASE);
	sampler_stop();
	storing_here()->stop();
}

int qp_init(const qp_config *config)
{
	/* Before the lock, because it waits for the loader's lock, which a thread holds that comes
	 * here from a constructor of a library that is being loaded. */
	int cancel = cancel_hold(), error = process_running() ? 0 : modules_init();
	int code = QP_OK;

	cancel_release(cancel);
	if (error)
		return error_set(QP_SYSTEM, "the loaded modules cannot be read: %s", strerror(error));
	lock_acquire(&lock);
	if (!running) {
		code = start(config);
		apply_changes(code == QP_OK);
		__atomic_store_n(&running, code == QP_OK, __ATOMIC_RELEASE);
	}
	lock_release(&lock);
	return code;
}

/* The store may have ended, and the sampler. */
static void start_after_refusal(void)
{
	lock_acquire(&lock);
	if (ring)
		__atomic_store_n(&running,
		                 storing_here()->start(ring, handover_is_done()) != ENOMEM &&
		                         !sampler_init(ring),
		                 __ATOMIC_RELEASE);
	lock_release(&lock);
}

int qp_shutdown(void)
{
	lock_acquire(&lock);
	if (running) {
		context_end_to(0);
		process_flush_sums();
		__atomic_store_n(&running, false, __ATOMIC_RELEASE);
		sampler_stop();
		sampler_quiesce();
		storing_here()->stop();
	}
	lock_release(&lock);
	return QP_OK;
}

void process_end_recording(void)
{
	qp_shutdown();
	lock_acquire(&lock);
	has_ended = ring != NULL;
	handover_end();
	lock_release(&lock);
}

int qp_flush(int timeout_ms)
{
	char *reason;

	if (!process_running())
		return error_set(QP_NOT_RUNNING, "qp_flush: queryprof is not running, call qp_init() first");
	page_io_flush_all();
	if (!storing_here()->drain(timeout_ms))
		return error_set(QP_STORE, "qp_flush: some data was not stored within %d ms", timeout_ms);
	reason = storing_here()->error();
	return reason ? error_detach(QP_STORE, reason, "") : QP_OK;
}
