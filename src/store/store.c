/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's public side: configuration, waiting for the flusher, fork and exit. Work that needs the
 * writing connection is a request to the flusher thread, and the callers wait for its response with a
 * limit.
 *
 * Order of locks: the control block's, the readers'.
 */
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/free_later.h"
#include "base/lock.h"
#include "base/own_process.h"
#include "base/text.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "query/inspect.h"
#include "query/statement_stats.h"
#include "queryprof.h"
#include "store/file/database.h"
#include "store/flusher.h"
#include "store/last_thread.h"
#include "store/read/pool.h"
#include "timers/threads.h"

#define NS_PER_MS 1000000ll
#define INTERVAL_DEFAULT_NS (1000 * NS_PER_MS)

/* The flusher may be inside fsync(). */
#define FLUSHER "the flusher, which ring_wake() has woken"
BOUNDED_WAIT_DEFINE(for_request, "a new trace file: the flusher has it", BOUND_MS(10000), FLUSHER);
BOUNDED_WAIT_DEFINE(for_drain, "a flush: the records are stored", BOUND_OF_CALLER, FLUSHER);
BOUNDED_WAIT_DEFINE(for_last_drain, "exec(), _exit(): the records are stored", BOUND_MS(1000), FLUSHER);
BOUNDED_WAIT_DEFINE(for_shutdown, "qp_shutdown(): the flusher has ended", BOUND_MS(10000), FLUSHER);
BOUNDED_WAIT_DEFINE(at_exit, "the end of the process: the flusher has ended", BOUND_MS(2000), FLUSHER);
BOUNDED_WAIT_DEFINE(for_fork, "fork(): the flusher has closed the file", BOUND_MS(1000), FLUSHER);
/* After pthread_create() failed. */
#define RETRY_THREAD_NS (1000 * NS_PER_MS)

/* --- settings ------------------------------------------------------------------------ */

/* The path becomes absolute here, because the host may change its working directory, and SQLite
 * would treat "file:…" as a URI. 0 or an errno value. */
static int copy_settings(const struct store_config *config, struct settings_of_store *settings)
{
	*settings = (struct settings_of_store){
		.max_bytes = config->max_bytes > 0 ? config->max_bytes : 0,
		.flush_interval_ns =
			config->flush_interval_ns > 0 ? config->flush_interval_ns : INTERVAL_DEFAULT_NS,
		.does_chores = config->does_chores,
		.is_elsewhere = config->is_elsewhere,
	};
	if (!config->path || !*config->path)
		return 0;
	if (*config->path == '/') {
		settings->path = strdup(config->path);
	} else {
		char *folder = getcwd(NULL, 0);

		if (!folder)
			return errno;
		settings->path = text_format("%s/%s", folder, config->path);
		free(folder);
	}
	return settings->path ? 0 : ENOMEM;
}

/* Whether another process stores. Then the store has no thread and no file here, except for
 * readers if SQL asks for the trace file, and settings of the file have no effect. */
static bool store_is_elsewhere(void)
{
	return __atomic_load_n(&store_control.state, __ATOMIC_RELAXED) == STORE_ELSEWHERE;
}

bool store_waits_for_file(void)
{
	return __atomic_load_n(&store_control.waits_for_file, __ATOMIC_RELAXED);
}

REQUIRES(store_control.lock) static bool start_thread(void);

void store_set_chore(store_chore chore)
{
	store_control.chore = chore;
}

/* Readers here read what the other process has stored. */
REQUIRES(store_control.lock) static void begin_elsewhere(void)
{
	control_happens(EVENT_INIT_ELSEWHERE);
	if (store_control.state != STORE_ELSEWHERE)
		return;
	store_control.open_path = store_control.settings.path ? strdup(store_control.settings.path) : NULL;
	__atomic_store_n(&store_control.epoch, 1, __ATOMIC_RELEASE);
}

int store_init(struct ring *ring, const struct store_config *config)
{
	struct settings_of_store settings;
	int error = copy_settings(config, &settings);

	if (error)
		return error;
	control_lock();
	if (store_control.ring) {
		error = EALREADY;
		free(settings.path);
	} else {
		store_control.ring = ring;
		free(store_control.settings.path);
		store_control.settings = settings;
		store_control.start_thread = start_thread;
		store_control.reading_wanted = false;
		store_control.drained = store_control.drain_target = ring_tail(ring);
		store_control.retry_thread_at = 0;
		own_process_renew();
		if (settings.is_elsewhere)
			begin_elsewhere();
		else
			control_happens(EVENT_INIT);
	}
	control_unlock();
	return error;
}

bool store_is_started(void)
{
	bool is_started;

	control_lock();
	is_started = store_control.ring &&
	             (store_control.state < STORE_STOPPING || store_control.state > STORE_FINISHED);
	control_unlock();
	return is_started;
}

/* --- the thread ------------------------------------------------------------------------- */

REQUIRES(store_control.lock) static bool start_thread(void)
{
	int error;

	if (control_now_ns() < store_control.retry_thread_at)
		return false;
	error = last_thread_watch() ? control_make_thread(&store_control.thread, flusher_main) : EAGAIN;
	if (error) {
		store_control.retry_thread_at = control_now_ns() + RETRY_THREAD_NS;
		free(store_control.error);
		store_control.error =
			text_format("the flusher's thread cannot be started: %s", strerror(error));
		store_count(STORE_ERRORS, 1);
		return false;
	}
	control_happens(EVENT_THREAD);
	return true;
}

void store_start(void)
{
	/* Relaxed: the state is read again under the lock. */
	if (__atomic_load_n(&store_control.state, __ATOMIC_RELAXED) != STORE_READY)
		return;
	control_lock();
	control_start_thread();
	control_unlock();
}

/* --- requests ------------------------------------------------------------------------------ */

int store_open(char **error)
{
	struct settings_of_store none = { .path = NULL };
	struct waiting waiting = waiting_begin_ms(&for_request, INT_MAX);

	*error = NULL;
	if (store_is_elsewhere())
		return QP_OK;
	return control_request(REQUEST_OPEN, &none, &waiting, error);
}

void store_open_ahead(void)
{
	char *error = NULL;

	/* The flusher reports an error when there is something to store. */
	if (own_process_is_here() && !control_epoch())
		store_open(&error);
	free(error);
}

int store_configure(const struct store_config *config, char **error)
{
	struct waiting waiting = waiting_begin_ms(&for_request, INT_MAX);
	struct settings_of_store settings, copy;
	int number = copy_settings(config, &settings), code;

	*error = NULL;
	if (store_is_elsewhere())
		return QP_OK;
	if (!number)
		number = copy_settings(config, &copy);
	if (number) {
		*error = text_format("%s: %s", config->path, strerror(number));
		return number == ENOMEM ? QP_NOMEM : QP_STORE;
	}
	code = control_request(REQUEST_CONFIGURE, &copy, &waiting, error);
	if (code) {
		free(settings.path);
		return code;
	}
	control_lock();
	free(store_control.settings.path);
	store_control.settings = settings;
	control_unlock();
	return QP_OK;
}

/* Has the flusher store everything before `target`. */
REQUIRES(store_control.lock) static void request_drain(uint64_t target)
{
	if (target > store_control.drain_target)
		store_control.drain_target = target;
	ring_wake(store_control.ring);
}

REQUIRES(store_control.lock) static void await_drained(uint64_t target, struct waiting *waiting)
{
	bool in_time = true;

	/* The ring's tail is not sufficient, because records that were taken may not be stored yet. */
	while (in_time && control_is_live() && store_control.drained < target)
		in_time = control_wait(waiting);
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

/* The other process frees stored records without a notification, so poll every few ms. */
REQUIRES(store_control.lock) static void await_other(uint64_t target, struct waiting *waiting)
{
	bool in_time = true;

	if (!waiting->wait.give_up)
		waiting->wait.give_up = never;
	while (in_time && ring_tail(store_control.ring) < target)
		in_time = control_wait(waiting);
}

bool store_drain_waiting(const struct store_wait *wait)
{
	struct waiting waiting = waiting_begin(&for_drain, wait);
	bool drained = true;
	uint64_t target;

	control_lock();
	if (store_control.state == STORE_ELSEWHERE) {
		target = ring_head(store_control.ring);
		await_other(target, &waiting);
		drained = ring_tail(store_control.ring) >= target;
	} else if (store_control.ring) {
		target = ring_head(store_control.ring);
		if (target > ring_tail(store_control.ring) && control_start_thread())
			request_drain(target);
		if (store_control.state == STORE_DISABLED) {
			flusher_discard();
			store_control.drained = ring_tail(store_control.ring);
		}
		await_drained(target, &waiting);
		drained = store_control.drained >= target;
	}
	control_unlock();
	return drained;
}

bool store_drain(int timeout_ms)
{
	return store_drain_waiting(&(struct store_wait){ .timeout_ms = timeout_ms });
}

/* Drains in the process itself. */
static void drain_for_end(struct waiting *waiting)
{
	uint64_t target;

	/* It was never started, or it no longer exists. */
	if (__atomic_load_n(&store_control.state, __ATOMIC_RELAXED) <= STORE_READY ||
	    !lock_acquire_within(&store_control.lock, &waiting->bound))
		return;
	if (control_is_live()) {
		if (query_any_open()) /* a record, so that the flusher looks at it */
			statement_stats_announce();
		target = ring_head(store_control.ring);
		request_drain(target);
		await_drained(target, waiting);
	}
	control_unlock();
}

void store_drain_for_exit(void)
{
	struct waiting waiting = waiting_begin_ms(&for_last_drain, INT_MAX);

	drain_for_end(&waiting);
}

void store_leader_ends(void)
{
	bool watched;

	if (!own_process_is_here() || syscall(SYS_gettid) != getpid())
		return;
	control_lock();
	control_happens(EVENT_LEADER_ENDS);
	watched = !control_has_thread() || last_thread_watch();
	control_unlock();
	if (!watched)
		store_shutdown(); /* rather than a process that never ends */
}

/* --- end ------------------------------------------------------------------------------------- */

/* False: the flusher hangs in the file system, and ends later on its own or with the process. */
REQUIRES(store_control.lock) static bool stop_thread(struct waiting *waiting)
{
	bool in_time = true;
	unsigned kind;
	size_t size;

	if (ring_peek(store_control.ring, &kind, &size))
		control_start_thread();
	if (!control_has_thread())
		return true;
	control_happens(EVENT_STOP);
	ring_wake(store_control.ring);
	while (in_time && store_control.state != STORE_FINISHED)
		in_time = control_wait(waiting);
	return store_control.state == STORE_FINISHED;
}

/* Another thread shuts down already. */
REQUIRES(store_control.lock) static bool is_ending(void)
{
	return store_control.state >= STORE_STOPPING && store_control.state <= STORE_FINISHED;
}

static void free_all(void)
{
	if (store_is_elsewhere())
		pool_end(); /* the flusher did not */
	pool_pause(false);
	pool_resume();
	flusher_free();
	space_free();
}

static void shut_down(struct waiting waiting)
{
	bool joinable;

	/* A child that was made without queryprof's hooks: the lock may be held by a thread that
	 * does not exist here. */
	if (!own_process_is_here())
		return;
	control_lock();
	if (!store_control.ring || is_ending() || !stop_thread(&waiting)) {
		control_unlock();
		return;
	}
	joinable = store_control.state == STORE_FINISHED;
	free(store_control.error);
	store_control.error = NULL;
	control_unlock();

	if (joinable)
		control_join_thread(&store_control.thread);
	free_all();
	control_lock();
	store_control.ring = NULL;
	control_happens(pool_has_thread() ? EVENT_READER_HANGS : EVENT_FREED);
	control_unlock();
}

void store_shutdown(void)
{
	shut_down(waiting_begin_ms(&for_shutdown, INT_MAX));
}

void store_confine(const char *why)
{
	__atomic_store_n(&store_control.is_confined, true, __ATOMIC_RELAXED);
	if (store_is_elsewhere()) {
		pool_end();
		return;
	}
	shut_down(waiting_begin_ms(&for_shutdown, INT_MAX));
	last_thread_await_watch();
	control_lock();
	free(store_control.error);
	store_control.error = text_format("%s", why);
	control_happens(EVENT_FORBIDDEN);
	control_unlock();
}

void store_confine_no_more(void)
{
	__atomic_store_n(&store_control.is_confined, false, __ATOMIC_RELAXED);
	control_lock();
	if (!pool_has_thread())
		control_happens(EVENT_ALLOWED);
	control_unlock();
}

/* exit() without qp_shutdown(). Other threads still run, and so do destructors of libraries that
 * were loaded after this one. A function that a destructor registers is called after all
 * destructors, if its handle belongs to no library. If one of them ends the process, everything
 * before it has been stored. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

#define FIRST_DRAIN_MS 1500
#define LOCKED_PATIENCE_MS 100

static int left_ms; /* one limit for both, which excludes the time in the host's destructors */

struct first_drain {
	struct waiting waiting;
	uint64_t stored_ns; /* the rest of the limit when the flusher could last use the file */
};

/* Another process has locked the file. At the end, unstored records are stored, or handed over. */
static bool is_locked_for_long(void *context)
{
	struct first_drain *drain = context;
	uint64_t left_ns = bounded_wait_remaining(&drain->waiting.bound);

	if (!store_waits_for_file())
		drain->stored_ns = left_ns;
	return drain->stored_ns - left_ns > BOUND_MS(LOCKED_PATIENCE_MS);
}

static void drain_before_destructors(void)
{
	struct first_drain drain;
	const struct store_wait wait = { FIRST_DRAIN_MS, is_locked_for_long, &drain };

	drain.waiting = waiting_begin(&at_exit, &wait);
	drain.stored_ns = bounded_wait_remaining(&drain.waiting.bound);
	control_wait_for_file(false);
	drain_for_end(&drain.waiting);
}

static void on_end_of_destructors(void *unused)
{
	(void)unused;
	if (own_process_is_here())
		control_keep_threads();
	shut_down(waiting_begin_ms(&at_exit, left_ms));
}

__attribute__((destructor)) static void on_exit_of_process(void)
{
	struct waiting ending = waiting_begin_ms(&at_exit, INT_MAX);

	if (own_process_is_here())
		drain_before_destructors();
	left_ms = (int)(bounded_wait_remaining(&ending.bound) / NS_PER_MS);
	if (__cxa_atexit(on_end_of_destructors, NULL, NULL))
		on_end_of_destructors(NULL);
}

/* --- what it shows -------------------------------------------------------------------------- */

static char *copy_text(char *const *text)
{
	char *copy;

	control_lock();
	copy = *text ? strdup(*text) : NULL;
	control_unlock();
	return copy;
}

char *store_path(void)
{
	char *path = copy_text(&store_control.open_path);

	if (path && database_is_in_memory(path)) {
		free(path);
		path = NULL;
	}
	return path;
}

char *store_error(void)
{
	return copy_text(&store_control.error);
}

/* --- fork -------------------------------------------------------------------------------------- */

/* Between before and after all locks are held. SQLite forbids a child to use its parent's
 * connections, so none is open then; if that cannot be achieved in time, the child works without
 * SQLite. */
static bool child_is_clean;

ACQUIRES(store_control.lock) void store_before_fork(void)
{
	struct waiting waiting = waiting_begin_ms(&for_fork, INT_MAX);
	bool in_time = true;

	control_lock();
	store_control.pauses++;
	store_control.is_open_at_fork = false;
	if (control_is_live())
		ring_wake(store_control.ring);
	while (in_time && control_is_live() && store_control.state != STORE_PARKED)
		in_time = control_wait(&waiting);
	child_is_clean = pool_pause(true) && in_time && store_control.state != STORE_DISABLED;
}

RELEASES(store_control.lock) void store_after_fork_parent(void)
{
	pool_resume();
	store_control.pauses--;
	condition_change(&store_control.changed);
	control_unlock();
}

/* Forgets the parent's threads and files. */
REQUIRES(store_control.lock) static void reset_control(void)
{
	store_control.pauses = 0;
	store_control.threads_stay = false;
	store_control.request = REQUEST_NONE;
	store_control.reading_wanted = false;
	store_control.retry_thread_at = 0;
	own_process_renew();
	__atomic_store_n(&store_control.epoch, 0, __ATOMIC_RELEASE);
	free_text_later(store_control.open_path);
	store_control.open_path = NULL;
	control_happens(EVENT_CHILD);
	if (store_control.is_confined) /* no thread, for this reason */
		return;
	free_text_later(store_control.error);
	store_control.error = NULL;
	if (store_control.ring && store_control.settings.is_elsewhere)
		begin_elsewhere();
	else if (store_control.ring)
		control_happens(EVENT_INIT);
}

void store_adopt_ring_in_child(struct ring *ring)
{
	if (store_control.ring)
		store_control.ring = ring;
}

RELEASES(store_control.lock) void store_after_fork_child(void)
{
	pool_reset_in_child();
	store_reset_counters();
	reset_control();
	if (!child_is_clean)
		store_control.no_file = "the process was forked while its parent's trace file was in use";
	else if (store_control.is_open_at_fork)
		store_control.no_file = "the process was forked from one without the right to open its file";
	flusher_reset_in_child();
	if (store_control.ring) {
		/* The sampler has emptied its own ring, and may have written to it since. */
		if (store_control.ring != sampler_ring())
			ring_reset_in_child(store_control.ring);
		store_control.drained = store_control.drain_target = ring_tail(store_control.ring);
	}
	control_unlock();
}

static const struct lock_group locks = {
	.before_fork = store_before_fork,
	.after_fork_in_parent = store_after_fork_parent,
	.after_fork_in_child = store_after_fork_child,
};
LOCK_DEFINE_GROUP(store, LOCK_STORE, &locks);
