/* SPDX-License-Identifier: Apache-2.0 */
#include "store/control/control.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/sys.h"
#include "base/text.h"
#include "collect/ring_reader.h"
#include "handover/storing.h"
#include "queryprof.h"
#include "timers/threads.h"

#define STACK_BYTES (512 * 1024)

struct control store_control;
LOCK_DEFINE_GROUPED(control, LOCK_STORE_CONTROL, &store_control.lock);

void control_lock(void)
{
	lock_acquire(&store_control.lock);
}

void control_unlock(void)
{
	lock_release(&store_control.lock);
}

bool control_wait(struct waiting *waiting)
{
	return waiting_goes_on(waiting, &store_control.changed, &store_control.lock);
}

/* control.h has the diagram. An event that a state does not expect does not change it: a shutdown may have
 * overtaken a fork. */
REQUIRES(store_control.lock) static enum store_state state_after(enum store_event event)
{
	const enum store_state now = store_control.state;

	switch (event) {
	case EVENT_INIT: return now == STORE_NONE ? STORE_READY : now;
	case EVENT_INIT_ELSEWHERE: return now == STORE_NONE ? STORE_ELSEWHERE : now;
	case EVENT_THREAD: return now == STORE_READY ? STORE_RUNNING : now;
	case EVENT_FORK: return now == STORE_RUNNING ? STORE_PARKED : now;
	case EVENT_FORK_OVER: return now == STORE_PARKED ? STORE_RUNNING : now;
	case EVENT_CHILD: return store_control.is_confined ? now : STORE_NONE;
	case EVENT_STOP: return STORE_STOPPING;
	case EVENT_STOP_SEEN: return STORE_FINISHING;
	case EVENT_STORED: return STORE_FINISHED;
	case EVENT_FREED: return now == STORE_DISABLED ? now : STORE_NONE;
	case EVENT_READER_HANGS: return STORE_DISABLED;
	case EVENT_FORBIDDEN: return STORE_DISABLED;
	case EVENT_ALLOWED: return now == STORE_DISABLED ? STORE_NONE : now;
	case EVENT_LEADER_ENDS:
	case EVENT_WATCH:
	case EVENT_WATCH_OVER: break;
	}
	return now;
}

REQUIRES(store_control.lock) static enum watch_state watch_after(enum store_event event)
{
	const enum watch_state now = store_control.watch;

	switch (event) {
	case EVENT_LEADER_ENDS: return now == WATCH_NONE ? WATCH_WANTED : now;
	case EVENT_WATCH: return WATCH_RUNS;
	case EVENT_WATCH_OVER:
	case EVENT_CHILD: return WATCH_NONE;
	default: return now;
	}
}

void control_happens(enum store_event event)
{
	const enum store_state state = state_after(event);
	static const char *const names[] = { "none",     "elsewhere", "ready",    "running", "parked",
		                             "stopping", "finishing", "finished", "disabled" };

	debug_log(DEBUG_STORE, "state %s, file %s, error %s", names[state],
	          store_control.open_path ? store_control.open_path : "none",
	          store_control.error ? store_control.error : "none");
	/* Relaxed: if store_start() reads an older state, it only takes the lock unnecessarily. */
	if ((state == STORE_READY) != (store_control.state == STORE_READY))
		storing_await_first_record(state == STORE_READY);
	__atomic_store_n(&store_control.state, state, __ATOMIC_RELAXED);
	__atomic_store_n(&store_control.watch, watch_after(event), __ATOMIC_RELAXED);
	condition_change(&store_control.changed);
}

bool control_is_live(void)
{
	return store_control.state >= STORE_RUNNING && store_control.state <= STORE_FINISHING;
}

bool control_has_thread(void)
{
	return control_is_live() || store_control.state == STORE_FINISHED;
}

bool control_start_thread(void)
{
	if (store_control.state == STORE_READY)
		store_control.start_thread();
	return control_has_thread();
}

int64_t control_now_ns(void)
{
	return (int64_t)clock_ns(CLOCK_MONOTONIC);
}

BOUNDED_WAIT_DEFINE(for_process, "a thread of the store: the end of the process", BOUND_NONE,
                    "nothing: it ends with the process");

static void *thread_main(void *argument)
{
	struct store_thread *thread = argument;
	struct bounded_wait wait = bounded_wait_begin(&for_process);
	uint32_t never = 0;

	pthread_setname_np(pthread_self(), "queryprof");
	sampler_exclude_thread();
	thread->work();
	__atomic_store_n(&thread->is_done, 1, __ATOMIC_RELEASE);
	futex_wake(&thread->is_done, 1);
	while (__atomic_load_n(&store_control.threads_stay, __ATOMIC_ACQUIRE))
		bounded_wait_futex(&wait, &never, 0, BOUND_NONE);
	return NULL;
}

int control_make_thread(struct store_thread *thread, void (*work)(void))
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int error;

	if (store_control.is_confined)
		return EPERM;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	*thread = (struct store_thread){ .work = work };
	error = pthread_create(&thread->thread, &attributes, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

BOUNDED_WAIT_DEFINE(for_end, "a thread of the store: its end", NS_PER_S,
                    "the thread when its work is done; then nothing, so it is looked for: ever less often");
#define FIRST_NAP_NS 20000

void control_join_thread(struct store_thread *thread)
{
	struct bounded_wait wait = bounded_wait_begin(&for_end);
	uint64_t nap_ns = FIRST_NAP_NS;

	while (!__atomic_load_n(&thread->is_done, __ATOMIC_ACQUIRE) &&
	       bounded_wait_futex(&wait, &thread->is_done, 0, BOUND_NONE))
		;
	if (__atomic_load_n(&store_control.threads_stay, __ATOMIC_RELAXED))
		return;
	while (pthread_tryjoin_np(thread->thread, NULL)) {
		if (!bounded_wait_nap(&wait, nap_ns)) {
			pthread_detach(thread->thread);
			return;
		}
		nap_ns += nap_ns / 4;
	}
}

void control_keep_threads(void)
{
	__atomic_store_n(&store_control.threads_stay, true, __ATOMIC_RELEASE);
}

/* --- requests ------------------------------------------------------------------------ */

REQUIRES(store_control.lock) static int refuse_request(bool in_time, char **error)
{
	if (store_control.error)
		*error = strdup(store_control.error);
	else
		*error = text_format(in_time ? "the store is not running" : "the flusher is busy");
	return store_control.state == STORE_NONE ? QP_NOT_RUNNING : QP_STORE;
}

/* A flush that the flusher has not begun is cancelled: it would happen after its caller has continued. If a
 * newer flush has begun, it belongs to another caller. */
REQUIRES(store_control.lock) static void withdraw_request(uint64_t number)
{
	if (store_control.request_begun >= number)
		return;
	store_control.request = REQUEST_NONE;
	free(store_control.wanted.path);
	store_control.wanted.path = NULL;
	condition_change(&store_control.changed);
}

REQUIRES(store_control.lock) static int await_response(uint64_t number, struct waiting *waiting, char **error)
{
	bool in_time = true;

	while (in_time && store_control.request_done < number && control_is_live())
		in_time = control_wait(waiting);
	if (store_control.request_done != number) {
		withdraw_request(number);
		*error = text_format("the flusher did not respond in time");
		return QP_STORE;
	}
	*error = store_control.request_error;
	store_control.request_error = NULL;
	return store_control.request_code;
}

int control_request(enum request request, struct settings_of_store *wanted, struct waiting *waiting,
                    char **error)
{
	bool in_time = true;
	int code;

	control_lock();
	while (in_time && control_start_thread() && store_control.request != REQUEST_NONE)
		in_time = control_wait(waiting);
	if (in_time && control_has_thread()) {
		store_control.request = request;
		store_control.wanted = *wanted;
		ring_wake(store_control.ring);
		code = await_response(++store_control.request_number, waiting, error);
	} else {
		code = refuse_request(in_time, error);
		free(wanted->path);
	}
	control_unlock();
	return code;
}

/* --- for readers ----------------------------------------------------------------------- */

uint64_t control_epoch(void)
{
	/* Acquire: the path was set before. */
	return __atomic_load_n(&store_control.epoch, __ATOMIC_ACQUIRE);
}

/* Opens a file that was only named, or tries again if opening failed. */
REQUIRES(store_control.lock) static void open_named_file(struct waiting *waiting, char **error)
{
	struct settings_of_store none = { .path = NULL };

	if (store_control.state == STORE_NONE || store_control.open_path ||
	    (!store_control.settings.path && !store_control.error))
		return;
	control_unlock();
	control_request(REQUEST_OPEN, &none, waiting, error);
	control_lock();
	if (store_control.open_path) { /* a store in memory is open although it has a path */
		free(*error);
		*error = NULL;
	}
}

bool control_reading_path(char **path, uint64_t *epoch, struct waiting *waiting, char **error)
{
	bool found;

	control_lock();
	if (store_control.state == STORE_DISABLED)
		*error = text_format("%s",
		                     store_control.error ? store_control.error : "the store is disabled");
	else
		open_named_file(waiting, error);
	found = !*error;
	if (found) {
		*path = store_control.open_path ? strdup(store_control.open_path) : NULL;
		*epoch = control_epoch();
	}
	control_unlock();
	return found;
}
