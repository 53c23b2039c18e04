/*
 * The store's public side: configuration, waiting for the flusher, fork and exit.
 * Whatever needs the writing connection is asked of the flusher thread; callers
 * wait for it on one condition, with a limit.
 *
 * Order of locks: space.c's, the control block's, reader.c's.
 */
#include "store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sampler/ring_reader.h"
#include "base/sys.h"
#include "queryprof.h"
#include "sampler/sampler.h"
#include "store/control.h"
#include "store/flusher.h"
#include "store/last_thread.h"
#include "store/read/space.h"

#define NS_PER_MS 1000000ll
#define INTERVAL_DEFAULT_NS (500 * NS_PER_MS)

/* Limits of waiting for the flusher. It may be inside fsync(). */
#define REQUEST_TIMEOUT_MS 10000
#define SHUTDOWN_TIMEOUT_MS 10000
#define EXIT_TIMEOUT_MS 2000
#define FORK_TIMEOUT_MS 1000
#define FORK_READERS_TIMEOUT_MS 100

/* After a refused pthread_create(). */
#define RETRY_THREAD_NS (1000 * NS_PER_MS)

#define STACK_BYTES (512 * 1024)

#define LOOK_INTERVAL_NS (50 * NS_PER_MS)

struct control store_control = { .lock = PTHREAD_MUTEX_INITIALIZER };
uint64_t store_counters[STORE_COUNTERS];

static bool started; /* the flusher runs; relaxed atomic, for store_start() */

/* --- time and waiting -------------------------------------------------------------- */

int64_t control_now_ns(void)
{
	return (int64_t)clock_ns(CLOCK_MONOTONIC);
}

struct timespec control_deadline(int timeout_ms)
{
	int64_t at = control_now_ns() + (timeout_ms < 0 ? 0 : timeout_ms) * NS_PER_MS;

	return (struct timespec){ .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
}

/* With the lock held; false once the deadline has passed. */
static bool wait_changed(const struct timespec *deadline)
{
	return pthread_cond_timedwait(&store_control.changed, &store_control.lock, deadline) != ETIMEDOUT;
}

static void make_condition(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&store_control.changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* --- settings ------------------------------------------------------------------------ */

/* The host may change its working directory, and SQLite would take "file:…" for a
 * URI: the path becomes absolute here. 0 or an errno value. */
static int copy_settings(const struct store_config *config, struct settings_of_store *settings)
{
	*settings = (struct settings_of_store){
		.max_bytes = config->max_bytes > 0 ? config->max_bytes : 0,
		.flush_interval_ns =
			config->flush_interval_ns > 0 ? config->flush_interval_ns : INTERVAL_DEFAULT_NS,
		.chore = config->chore,
	};
	if (!config->path || !*config->path)
		return 0;
	if (*config->path == '/') {
		settings->path = strdup(config->path);
	} else {
		char *folder = getcwd(NULL, 0);

		if (!folder)
			return errno;
		settings->path = database_sentence("%s/%s", folder, config->path);
		free(folder);
	}
	return settings->path ? 0 : ENOMEM;
}

int store_init(struct ring *ring, const struct store_config *config)
{
	struct settings_of_store settings;
	int error = copy_settings(config, &settings);

	if (error)
		return error;
	pthread_mutex_lock(&store_control.lock);
	if (store_control.initialised || store_control.thread_running) {
		error = EALREADY;
		free(settings.path);
	} else {
		make_condition();
		store_control.ring = ring;
		free(store_control.settings.path);
		store_control.settings = settings;
		store_control.stop = store_control.finished = store_control.parked = false;
		store_control.reading_wanted = false;
		store_control.drained = store_control.drain_target = ring_tail(ring);
		store_control.retry_thread_at = 0;
		__atomic_store_n(&store_control.owner, getpid(), __ATOMIC_RELAXED);
		store_control.initialised = true;
	}
	pthread_mutex_unlock(&store_control.lock);
	return error;
}

/* --- the thread ------------------------------------------------------------------------- */

int control_make_thread(pthread_t *thread, void *(*start)(void *))
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attributes, start, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

static void shut_down(int timeout_ms);

/* The process ends with its last thread, which runs what the host has for exit(), and
 * writes what its streams hold. That is this one: it has the host's descriptors, which
 * the flusher has not. */
static void *watch_main(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "queryprof");
	sampler_exclude_thread();
	for (;;) {
		int ours;

		pthread_mutex_lock(&store_control.lock);
		ours = 1 + store_control.thread_running + readers_have_thread();
		pthread_mutex_unlock(&store_control.lock);
		if (last_thread_is_ours(ours))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_INTERVAL_NS }, NULL);
	}
	shut_down(EXIT_TIMEOUT_MS);
	return NULL;
}

/* With the lock held, on a thread of the host's. False: there is none. */
static bool start_watch(void)
{
	pthread_t thread;

	if (!store_control.leader_ends || store_control.has_watch)
		return true;
	if (control_make_thread(&thread, watch_main))
		return false;
	pthread_detach(thread);
	store_control.has_watch = true;
	return true;
}

/* With the lock held. */
static bool start_thread(void)
{
	int error;

	if (store_control.thread_running)
		return true;
	if (!store_control.initialised || store_control.disabled ||
	    control_now_ns() < store_control.retry_thread_at)
		return false;
	error = start_watch() ? control_make_thread(&store_control.thread, flusher_main) : EAGAIN;
	if (error) {
		store_control.retry_thread_at = control_now_ns() + RETRY_THREAD_NS;
		free(store_control.error);
		store_control.error = database_sentence("no thread for the flusher: %s", strerror(error));
		store_count(STORE_ERRORS, 1);
		return false;
	}
	store_control.thread_running = true;
	__atomic_store_n(&started, true, __ATOMIC_RELAXED);
	return true;
}

void store_start(void)
{
	/* Relaxed: a false alarm only takes the lock. */
	if (__atomic_load_n(&started, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&store_control.lock);
	start_thread();
	pthread_mutex_unlock(&store_control.lock);
}

/* --- requests ------------------------------------------------------------------------------ */

/* Asks the flusher and waits for the answer. Takes over `wanted`. */
static int ask_flusher(enum request request, struct settings_of_store *wanted, char **error)
{
	struct timespec deadline = control_deadline(REQUEST_TIMEOUT_MS);
	uint64_t number;
	bool in_time = true;
	int code;

	pthread_mutex_lock(&store_control.lock);
	while (in_time && start_thread() && store_control.request != REQUEST_NONE)
		in_time = wait_changed(&deadline);
	if (!in_time || !store_control.thread_running) {
		*error = store_control.error ? strdup(store_control.error)
		                             : database_sentence(in_time ? "the store is not running"
		                                                         : "the flusher is busy");
		pthread_mutex_unlock(&store_control.lock);
		free(wanted->path);
		return store_control.initialised ? QP_STORE : QP_NOT_RUNNING;
	}
	store_control.request = request;
	store_control.wanted = *wanted;
	number = ++store_control.request_number;
	ring_wake(store_control.ring);
	while (in_time && store_control.request_done < number && !store_control.finished)
		in_time = wait_changed(&deadline);
	if (store_control.request_done == number) {
		code = store_control.request_code;
		*error = store_control.request_error;
		store_control.request_error = NULL;
	} else {
		code = QP_STORE;
		*error = database_sentence("the flusher did not answer in time");
	}
	pthread_mutex_unlock(&store_control.lock);
	return code;
}

int store_open(char **error)
{
	struct settings_of_store none = { .path = NULL };

	*error = NULL;
	return ask_flusher(REQUEST_OPEN, &none, error);
}

int store_configure(const struct store_config *config, char **error)
{
	struct settings_of_store settings, copy;
	int number = copy_settings(config, &settings), code;

	*error = NULL;
	if (!number)
		number = copy_settings(config, &copy);
	if (number) {
		*error = database_sentence("%s: %s", config->path, strerror(number));
		return number == ENOMEM ? QP_NOMEM : QP_STORE;
	}
	code = ask_flusher(REQUEST_CONFIGURE, &copy, error);
	if (code) {
		free(settings.path);
		return code;
	}
	pthread_mutex_lock(&store_control.lock);
	free(store_control.settings.path);
	store_control.settings = settings;
	pthread_mutex_unlock(&store_control.lock);
	return QP_OK;
}

bool store_drain(int timeout_ms)
{
	struct timespec deadline = control_deadline(timeout_ms);
	bool in_time = true, drained;
	uint64_t target;

	pthread_mutex_lock(&store_control.lock);
	if (!store_control.initialised) {
		pthread_mutex_unlock(&store_control.lock);
		return true;
	}
	target = ring_head(store_control.ring);
	if (target > ring_tail(store_control.ring) && start_thread()) {
		if (target > store_control.drain_target)
			store_control.drain_target = target;
		ring_wake(store_control.ring);
	}
	if (store_control.disabled && !store_control.thread_running) {
		flusher_discard();
		store_control.drained = ring_tail(store_control.ring);
	}
	/* The tail says too little: what was taken may not be stored yet. */
	while (in_time && store_control.thread_running && !store_control.finished &&
	       store_control.drained < target)
		in_time = wait_changed(&deadline);
	drained = store_control.drained >= target;
	pthread_mutex_unlock(&store_control.lock);
	return drained;
}

void store_drain_for_exit(void)
{
	struct timespec deadline = control_deadline(EXIT_TIMEOUT_MS / 2);
	bool in_time = true;
	uint64_t target;

	if (__atomic_load_n(&store_control.owner, __ATOMIC_RELAXED) != getpid() ||
	    !__atomic_load_n(&started, __ATOMIC_RELAXED) ||
	    pthread_mutex_clocklock(&store_control.lock, CLOCK_MONOTONIC, &deadline))
		return;
	target = ring_head(store_control.ring);
	if (target > store_control.drain_target)
		store_control.drain_target = target;
	ring_wake(store_control.ring);
	while (in_time && store_control.thread_running && !store_control.finished &&
	       store_control.drained < target)
		in_time = wait_changed(&deadline);
	pthread_mutex_unlock(&store_control.lock);
}

void store_leader_ends(void)
{
	bool watched;

	if (__atomic_load_n(&store_control.owner, __ATOMIC_RELAXED) != getpid() ||
	    syscall(SYS_gettid) != getpid())
		return;
	pthread_mutex_lock(&store_control.lock);
	store_control.leader_ends = true;
	watched = !store_control.thread_running || start_watch();
	pthread_mutex_unlock(&store_control.lock);
	if (!watched)
		store_shutdown(); /* rather than a process that never ends */
}

/* --- end ------------------------------------------------------------------------------------- */

/* With the lock held. True when the flusher has stored all and ended. */
static bool stop_thread(int timeout_ms)
{
	struct timespec deadline = control_deadline(timeout_ms);
	bool in_time = true;
	unsigned kind;
	size_t size;

	if (!store_control.thread_running && ring_peek(store_control.ring, &kind, &size))
		start_thread();
	if (!store_control.thread_running)
		return true;
	store_control.stop = true;
	ring_wake(store_control.ring);
	while (in_time && !store_control.finished)
		in_time = wait_changed(&deadline);
	return store_control.finished;
}

static void shut_down(int timeout_ms)
{
	pthread_t thread;
	bool joinable;

	/* A child that came without our hooks: the lock may be held by a thread that it
	 * does not have. */
	if (__atomic_load_n(&store_control.owner, __ATOMIC_RELAXED) != getpid())
		return;
	pthread_mutex_lock(&store_control.lock);
	if (!store_control.initialised || store_control.ending) {
		pthread_mutex_unlock(&store_control.lock);
		return;
	}
	store_control.ending = true;
	if (!stop_thread(timeout_ms)) {
		/* It hangs in the file system. It ends by itself, or with the process. */
		pthread_mutex_unlock(&store_control.lock);
		return;
	}
	joinable = store_control.thread_running;
	thread = store_control.thread;
	store_control.thread_running = store_control.initialised = store_control.ending = false;
	__atomic_store_n(&started, false, __ATOMIC_RELAXED);
	free(store_control.error);
	store_control.error = NULL;
	pthread_mutex_unlock(&store_control.lock);

	if (joinable)
		pthread_join(thread, NULL);
	readers_pause(0);
	readers_resume();
	flusher_free();
	space_free();
}

void store_shutdown(void)
{
	shut_down(SHUTDOWN_TIMEOUT_MS);
}

/* exit() without qp_shutdown(). Other threads still run. */
__attribute__((destructor)) static void on_exit_of_process(void)
{
	shut_down(EXIT_TIMEOUT_MS);
}

/* --- what it tells -------------------------------------------------------------------------- */

static char *copy_text(char *const *text)
{
	char *copy;

	pthread_mutex_lock(&store_control.lock);
	copy = *text ? strdup(*text) : NULL;
	pthread_mutex_unlock(&store_control.lock);
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

uint64_t store_counter(enum store_counter which)
{
	return which < STORE_COUNTERS ? __atomic_load_n(&store_counters[which], __ATOMIC_RELAXED) : 0;
}

uint64_t control_epoch(void)
{
	return __atomic_load_n(&store_control.epoch, __ATOMIC_ACQUIRE);
}

bool control_reading_path(char **path, uint64_t *epoch, char **error)
{
	bool must_open;

	pthread_mutex_lock(&store_control.lock);
	if (store_control.disabled) {
		*error = store_control.error ? strdup(store_control.error) : NULL;
		pthread_mutex_unlock(&store_control.lock);
		return false;
	}
	must_open = store_control.initialised && !store_control.open_path &&
	            (store_control.settings.path || store_control.error);
	pthread_mutex_unlock(&store_control.lock);
	if (must_open)
		store_open(error);

	pthread_mutex_lock(&store_control.lock);
	if (must_open && *error && !store_control.open_path) {
		pthread_mutex_unlock(&store_control.lock);
		return false;
	}
	free(*error); /* it may be in memory, in spite of a path */
	*error = NULL;
	*path = store_control.open_path ? strdup(store_control.open_path) : NULL;
	*epoch = control_epoch();
	pthread_mutex_unlock(&store_control.lock);
	return true;
}

void control_start_reading(void)
{
	struct timespec deadline = control_deadline(REQUEST_TIMEOUT_MS);
	bool in_time = true;

	pthread_mutex_lock(&store_control.lock);
	if (start_thread()) {
		store_control.reading_wanted = true;
		ring_wake(store_control.ring);
		while (in_time && store_control.reading_wanted && !store_control.finished)
			in_time = wait_changed(&deadline);
	}
	pthread_mutex_unlock(&store_control.lock);
}

/* --- fork -------------------------------------------------------------------------------------- */

/* Between before and after all locks are held. SQLite forbids a child to use what
 * its parent opened, so nothing is open then; where that cannot be had in time, the
 * child does without. */
static bool child_is_clean;

void store_before_fork(void)
{
	struct timespec deadline = control_deadline(FORK_TIMEOUT_MS);
	bool in_time = true;

	space_before_fork();
	pthread_mutex_lock(&store_control.lock);
	store_control.pauses++;
	if (store_control.thread_running)
		ring_wake(store_control.ring);
	while (in_time && store_control.thread_running && !store_control.parked && !store_control.finished)
		in_time = wait_changed(&deadline);
	child_is_clean = readers_pause(FORK_READERS_TIMEOUT_MS) && in_time && !store_control.disabled;
}

void store_after_fork_parent(void)
{
	readers_resume();
	store_control.pauses--;
	pthread_cond_broadcast(&store_control.changed);
	pthread_mutex_unlock(&store_control.lock);
	space_after_fork();
}

void store_after_fork_child(void)
{
	readers_reset_in_child();
	store_control.pauses = 0;
	make_condition(); /* it may say that threads wait, which are not here */
	store_control.thread_running = store_control.parked = store_control.finished = false;
	store_control.stop = store_control.ending = store_control.leader_ends = store_control.has_watch =
		false;
	store_control.request = REQUEST_NONE;
	store_control.reading_wanted = false;
	__atomic_store_n(&store_control.owner, getpid(), __ATOMIC_RELAXED);
	store_control.retry_thread_at = 0;
	__atomic_store_n(&started, false, __ATOMIC_RELAXED);
	for (int i = 0; i < STORE_COUNTERS; i++)
		__atomic_store_n(&store_counters[i], 0, __ATOMIC_RELAXED);
	free(store_control.open_path);
	store_control.open_path = NULL;
	free(store_control.error);
	store_control.error = NULL;
	__atomic_store_n(&store_control.epoch, 0, __ATOMIC_RELEASE);
	if (!child_is_clean) {
		store_control.disabled = true;
		store_control.error = strdup("forked while the parent's trace file was in use");
	}
	flusher_reset_in_child();
	if (store_control.ring)
		ring_reset_in_child(store_control.ring);
	if (store_control.ring)
		store_control.drained = store_control.drain_target = ring_tail(store_control.ring);
	pthread_mutex_unlock(&store_control.lock);
	space_after_fork();
}
