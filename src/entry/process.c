/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qp_init(), qp_shutdown(), and fork: the parts of the way of a sample are started
 * from its end backwards (a writer finds its reader in place) and stopped
 * from its beginning.
 */
#include "entry/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory_headroom.h"
#include "entry/confined.h"
#include "entry/handover.h"
#include "entry/mark.h"
#include "hook/confine.h"
#include "hook/exit.h"
#include "hook/rights.h"
#include "label/sets.h"
#include "modules/modules.h"
#include "process/start.h"
#include "query/watch_cost.h"
#include "span/context.h"
#include "span/site.h"
#include "settings/settings.h"
#include "sql/metrics.h"
#include "sqlite/calls/hooks.h"
#include "sqlite/runs/runs.h"
#include "sqlite/session/labels.h"
#include "sqlite/session/recording.h"
#include "sqlite/session/setting_change.h"
#include "store/settings.h"
#include "store/shared_ring.h"
#include "store/store.h"
#include "symbol/symbol.h"
#include "timers/quiesce.h"
#include "timers/threads.h"
#include "frames/embed.h"

static void start_was_cut(void);
LOCK_DEFINE(lock, LOCK_PROCESS, .lost = start_was_cut);

static const struct lock_group store_locks = {
	.before_fork = store_before_fork,
	.after_fork_in_parent = store_after_fork_parent,
	.after_fork_in_child = store_after_fork_child,
};
LOCK_DEFINE_GROUP(store, LOCK_STORE, &store_locks);

/* All that is recorded is stored before the process ends in its own way, too. A child of vfork() has its
 * parent's memory, traces included. */
static void process_ends(void)
{
	if (!store_is_here())
		return;
	contexts_before_end();
	store_drain_for_exit();
}

static const struct exit_callbacks exit_callbacks = {
	.process_ends = process_ends,
	.thread_ends = store_leader_ends,
};

static bool running;
static struct ring *ring; /* made once: handlers may hold it for ever */

bool process_running(void)
{
	return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

/* Mostly it is where the parent's was. */
static void take_ring_in_child(struct ring *own, bool is_handed_over)
{
	ring = own;
	metrics_set_ring(own);
	store_adopt_ring_in_child(own, is_handed_over);
	sampler_adopt_ring_in_child(own);
}

static void rights_change(void)
{
	if (store_is_here() && (process_running() || session_start_recording()))
		store_open_ahead();
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

/* Of a process's own flusher, under `record`. */
static void report_failure(const char *sentence)
{
	if (session_recording() && !mark_write(MARK_LOST, sentence))
		shared_ring_lose_child();
}

static const struct store_callbacks store_callbacks = {
	.chore = embed_chore,
	.on_failure = report_failure,
};

static void start_after_refusal(void);

static const struct confined_process confined_process = {
	.is_running = runs_when_confined,
	.stop = stop_when_confined,
	.start_again = start_after_refusal,
};

/* Hooks come with the first library that is met, which may be long before qp_init(). */
__attribute__((constructor)) static void follow_process(void)
{
	exit_follow(&exit_callbacks);
	handover_on_fork(take_ring_in_child);
	rights_follow(rights_change);
	confined_follow(&confined_process);
	store_follow(&store_callbacks);
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

static int start(const qp_config *config)
{
	char why[MEMORY_SENTENCE_SIZE];
	struct store_config store;
	int code, error;

	if (confined_refusal())
		return error_set(QP_SYSTEM, "%s", confined_refusal());
	confine_inspect();
	settings_init();
	if (config && (code = apply_config(config)))
		return code;
	if (!ring && session_recording() &&
	    !memory_has_headroom(shared_ring_size(store_ring_bytes()) + MEMORY_OF_DATA, why))
		return error_set(QP_NOMEM, "%s", why);
	if (!ring && !(ring = handover_ring(store_ring_bytes())))
		return error_set(QP_NOMEM, "no memory for a ring of %zu bytes: %s", store_ring_bytes(),
		                 strerror(errno));
	store_ring_is_made();
	metrics_set_ring(ring);
	store_settings(&store);
	store.is_elsewhere = handover_is_done();
	error = store.path ? store_init(ring, &store) : ENOMEM;
	free((char *)store.path);
	if (error)
		return error_set(QP_SYSTEM, "the store cannot be started: %s", strerror(error));
	if (config && config->trace_log_path) {
		char *sentence = NULL;

		code = store_open(&sentence);
		if (code) {
			store_shutdown();
			return error_detach(code, sentence, "the trace file cannot be opened");
		}
	}
	if ((error = sampler_init(ring))) {
		store_shutdown();
		return error_set(QP_SYSTEM, "sampling cannot be started: %s", strerror(error));
	}
	watch_cost_calibrate();
	session_labels_follow(NULL);
	label_sets_publish();
	sites_publish_again();
	return QP_OK;
}

/* Another thread was starting or stopping when this child was forked. */
static void start_was_cut(void)
{
	__atomic_store_n(&running, false, __ATOMIC_RELEASE);
	sampler_stop();
	store_shutdown();
}

int qp_init(const qp_config *config)
{
	/* Before the lock: it waits for the loader's lock, which a thread has that comes here from a
	 * constructor of a library that is being loaded. */
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
	struct store_config store;

	lock_acquire(&lock);
	if (ring) {
		store_settings(&store);
		store.is_elsewhere = handover_is_done();
		__atomic_store_n(&running, store_init(ring, &store) != ENOMEM && !sampler_init(ring),
		                 __ATOMIC_RELEASE);
		free((char *)store.path);
	}
	lock_release(&lock);
}

int qp_shutdown(void)
{
	lock_acquire(&lock);
	if (running) {
		context_end_to(0);
		__atomic_store_n(&running, false, __ATOMIC_RELEASE);
		sampler_stop();
		sampler_quiesce();
		store_shutdown();
	}
	lock_release(&lock);
	return QP_OK;
}

int qp_flush(int timeout_ms)
{
	char *reason;

	if (!process_running())
		return error_set(QP_NOT_RUNNING, "qp_flush: queryprof is not running, call qp_init() first");
	if (!store_drain(timeout_ms))
		return error_set(QP_STORE, "qp_flush: not all was stored within %d ms", timeout_ms);
	reason = store_error();
	return reason ? error_detach(QP_STORE, reason, "") : QP_OK;
}
