/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requesting threads' stacks.
 *
 * A request is a number in the thread's slot and a signal to the thread. The thread's handler writes
 * the response into the slot, which is never unmapped. So no handler can write to wrong memory,
 * whatever has ended meanwhile: a late handler finds memory that still belongs to the slot, and a
 * request that is newer than the one that was sent, or that already has its response. Requests are
 * sent under a lock, one round after the other.
 *
 * A thread that blocks the signal is not sent any: the signal would stay queued, and the caller would
 * wait in vain. The C library blocks all signals for moments, so such a thread is checked twice. A
 * thread that blocks the signal directly after the check has that one signal pending, and is sent no
 * other.
 */
#include "timers/stacks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/own_process.h"
#include "base/sys.h"
#include "base/task_file.h"
#include "collect/slots.h"
#include "collect/state.h"
#include "handler/response.h"
#include "timers/signal.h"
#include "timers/timers.h"

#define NS_PER_MS 1000000ull
/* Between two looks at threads that do not respond or block the signal. */
#define CHECK_NS (5 * NS_PER_MS)
#define EXEC_PAUSE_NS NS_PER_S

LOCK_DEFINE(requesting, LOCK_STACKS, .at_fork = LOCK_LEFT);
static uint32_t newest; /* request; under the lock */

static uint32_t sending;    /* a signal is being sent */
static uint64_t exec_at_ns; /* when a thread last began to exec, 0: never */

struct request {
	struct thread *slot;
	uint32_t id;
	bool sent;
};

/* --- sending -------------------------------------------------------------------------- */

/* Whether the thread blocks the signal, as far as the kernel tells. In queryprof's handler nearly
 * all signals are blocked, as in many a worker, which blocks them when it begins. */
static bool is_blocked(const struct request *request, int number)
{
	static const char name[] = "\nSigBlk:";
	char text[4096];
	const char *found;

	task_file_read(request->id, "status", text, sizeof(text));
	found = strstr(text, name);
	if (!found)
		return false;
	uint64_t blocked = strtoull(found + sizeof(name) - 1, NULL, 16);
	return (blocked >> (number - 1) & 1) != 0 &&
	       (__atomic_load_n(&request->slot->began_blocked, __ATOMIC_RELAXED) ||
	        (blocked | signal_unblockable()) != UINT64_MAX);
}

static bool is_owner(const struct request *request)
{
	return __atomic_load_n(&request->slot->owner, __ATOMIC_SEQ_CST) == request->id;
}

static bool send_signal(const struct request *request, int number)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &request->slot->response;
	return syscall(SYS_rt_tgsigqueueinfo, info.si_pid, request->id, number, &info) == 0;
}

/* Not while a thread is on its way to another program. Sequentially consistent with
 * stacks_before_exec(): of the two one sees the other. */
static bool send_unless_exec(const struct request *request, int number)
{
	__atomic_store_n(&sending, 1, __ATOMIC_SEQ_CST);
	uint64_t exec_at = __atomic_load_n(&exec_at_ns, __ATOMIC_SEQ_CST);
	bool sent = (exec_at == 0 || clock_ns(CLOCK_MONOTONIC) - exec_at > EXEC_PAUSE_NS) &&
	            send_signal(request, number);
	__atomic_store_n(&sending, 0, __ATOMIC_SEQ_CST);
	return sent;
}

/* Unless it was already sent. False: the thread blocks the signal. */
static bool send_request(struct request *request)
{
	struct thread_response *response = &request->slot->response;
	struct thread *self = thread_current;
	bool missed = false;

	/* A thread that gives the signal away waits for those that use its number, see signal.c. */
	if (self)
		__atomic_store_n(&self->arming, true, __ATOMIC_SEQ_CST);
	int number = sampler_signal();
	if (request->sent || is_blocked(request, number)) {
		missed = !request->sent;
	} else {
		/* Sequentially consistent with the handler, see there. */
		__atomic_store_n(&response->requested, newest, __ATOMIC_SEQ_CST);
		uint32_t before =
			__atomic_exchange_n(&response->in_flight, (uint32_t)number, __ATOMIC_SEQ_CST);
		/* Another thread that has the slot by now would never get a signal that went to the one
		 * before. */
		request->sent = is_owner(request) &&
		                (before == (uint32_t)number || send_unless_exec(request, number));
		if (!request->sent)
			__atomic_store_n(&response->in_flight, 0, __ATOMIC_SEQ_CST);
	}
	if (self)
		__atomic_store_n(&self->arming, false, __ATOMIC_SEQ_CST);
	return !missed;
}

static bool send_requests(struct request *requests, uint32_t count)
{
	bool all = true;

	for (uint32_t i = 0; i < count; i++)
		all &= send_request(&requests[i]);
	return all;
}

BOUNDED_WAIT_DEFINE(for_responses, "the table system.stack_trace: responses of other threads",
                    BOUND_MS(60000),
                    "each thread, with its response; every look finds those that have ended");

/* --- waiting -------------------------------------------------------------------------- */

static bool has_response(const struct request *request)
{
	/* Acquire: the response. */
	return request->sent && __atomic_load_n(&request->slot->response.given, __ATOMIC_ACQUIRE) == newest;
}

static bool is_there(const struct request *request)
{
	return is_owner(request) && syscall(SYS_tgkill, getpid(), request->id, 0) == 0;
}

static uint32_t count_missing(const struct request *requests, uint32_t count, bool check)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < count; i++)
		missing +=
			requests[i].sent && !has_response(&requests[i]) && (!check || is_there(&requests[i]));
	return missing;
}

static void wait_for_responses(const struct request *requests, uint32_t count, struct bounded_wait *wait)
{
	bool check = false;

	for (;;) {
		/* Acquire: before the look at them, so that none is slept through. */
		uint32_t responses = __atomic_load_n(&response_count, __ATOMIC_ACQUIRE);
		if (count_missing(requests, count, check) == 0 || bounded_wait_remaining(wait) == 0)
			return;
		check = !bounded_wait_futex(wait, &response_count, responses, CHECK_NS);
	}
}

static void deliver(const struct request *request, void (*each)(void *, const struct thread_stack *),
                    void *context)
{
	const struct thread_response *response = &request->slot->response;
	struct thread_stack stack = { .thread_id = request->id };

	if (has_response(request)) {
		stack.query = response->query;
		stack.generation = response->generation;
		stack.truncated = response->truncated;
		stack.depth = response->depth;
		stack.addresses = response->addresses;
	} else if (!is_there(request)) {
		return;
	}
	each(context, &stack);
}

static struct request *find_threads(uint32_t *count)
{
	uint32_t slots = slots_count();
	struct request *requests = calloc(slots + 1, sizeof(*requests));

	*count = 0;
	for (uint32_t i = 0; requests && i < slots; i++) {
		struct thread *slot = slots_get(i);
		uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
		if (owner != 0)
			requests[(*count)++] = (struct request){ .slot = slot, .id = owner };
	}
	return requests;
}

void sampler_stacks(uint64_t timeout_ms, void (*each)(void *, const struct thread_stack *), void *context)
{
	int saved_errno = errno;
	struct request *requests;
	uint32_t count;

	lock_acquire(&requesting);
	requests = find_threads(&count);
	/* 0 is the response of a new slot. */
	newest = newest + 1 != 0 ? newest + 1 : 1;
	if (!signal_is_silent() && sampler_ring() && own_process_is_here() && sampler_keep_signal()) {
		struct bounded_wait wait = bounded_wait_begin_within(&for_responses, BOUND_MS(timeout_ms));
		if (!send_requests(requests, count)) {
			bounded_wait_nap(&wait, CHECK_NS);
			send_requests(requests, count);
		}
		wait_for_responses(requests, count, &wait);
	}
	for (uint32_t i = 0; i < count; i++)
		deliver(&requests[i], each, context);
	lock_release(&requesting);
	free(requests);
	errno = saved_errno;
}

/* --- another program, another process ------------------------------------------------- */

BOUNDED_WAIT_DEFINE(for_sending, "exec(): a thread that requests stacks by signals", BOUND_MS(50),
                    "nothing, so it looks every 20 us; that thread takes microseconds");

void stacks_before_exec(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_sending);

	__atomic_store_n(&exec_at_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	/* A few microseconds, if the sending thread is not stopped itself. */
	while (__atomic_load_n(&sending, __ATOMIC_SEQ_CST) != 0 && bounded_wait_nap(&wait, 20000))
		;
}

void stacks_after_fork(void)
{
	sending = 0;
	exec_at_ns = 0;
	if (thread_current)
		thread_current->response.in_flight = 0;
}
