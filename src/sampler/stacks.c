/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking threads for their stacks.
 *
 * A question is a number in the thread's slot and a signal to the thread; the answer is
 * written by its handler, in the slot, which is never unmapped. So nobody can write
 * where he should not, whoever has left meanwhile: a handler that comes late finds
 * memory that is still the slot's, and a question that is newer than the one that was
 * sent, or answered. Who asks does so under a lock, one after the other.
 *
 * A thread that blocks the signal is not sent any: it would stay queued, and we would
 * wait for nothing. The C library blocks all signals for moments: so who does is looked at
 * twice. Whoever blocks it right after we looked has that one signal waiting, and is sent
 * no other.
 */
#include "sampler/stacks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "handler/response.h"
#include "base/sys.h"
#include "base/task_file.h"
#include "sampler/signal.h"
#include "sampler/slots.h"
#include "sampler/state.h"
#include "sampler/timers.h"

#define NS_PER_MS 1000000ull
/* Between two looks at threads that do not answer or block the signal. */
#define LOOK_NS (5 * NS_PER_MS)
#define EXEC_PAUSE_NS NS_PER_S

LOCK_DEFINE(asking, LOCK_STACKS, .at_fork = LOCK_LEFT);
static uint32_t newest; /* question; under the lock */

static uint32_t sending;    /* a signal is being sent */
static uint64_t exec_at_ns; /* when a thread last began to exec, 0: never */

struct asked {
	struct thread *slot;
	uint32_t id;
	bool sent;
};

/* --- sending -------------------------------------------------------------------------- */

/* Whether the thread blocks the signal, as far as the kernel tells; not if it is in our
 * own handler, which nearly all signals are blocked in. */
static bool is_blocked(uint32_t id, int number)
{
	static const char name[] = "\nSigBlk:";
	char text[4096];
	const char *found;

	task_file_read(id, "status", text, sizeof(text));
	found = strstr(text, name);
	if (found == NULL)
		return false;
	uint64_t blocked = strtoull(found + sizeof(name) - 1, NULL, 16);
	return (blocked >> (number - 1) & 1) != 0 && (blocked | signal_unblockable()) != UINT64_MAX;
}

static bool send_signal(const struct asked *asked, int number)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &asked->slot->response;
	return syscall(SYS_rt_tgsigqueueinfo, info.si_pid, asked->id, number, &info) == 0;
}

/* Not while a thread is on its way to another program. Sequentially consistent with
 * stacks_before_exec(): of the two one sees the other. */
static bool send_unless_exec(const struct asked *asked, int number)
{
	__atomic_store_n(&sending, 1, __ATOMIC_SEQ_CST);
	uint64_t exec_at = __atomic_load_n(&exec_at_ns, __ATOMIC_SEQ_CST);
	bool sent = (exec_at == 0 || clock_ns(CLOCK_MONOTONIC) - exec_at > EXEC_PAUSE_NS) &&
	            send_signal(asked, number);
	__atomic_store_n(&sending, 0, __ATOMIC_SEQ_CST);
	return sent;
}

/* Asks if it was not asked yet. False: it blocks the signal. */
static bool ask(struct asked *asked)
{
	struct thread_response *response = &asked->slot->response;
	struct thread *self = thread_current;
	bool missed = false;

	/* Who gives the signal away waits for those who use its number, see signal.c. */
	if (self != NULL)
		__atomic_store_n(&self->arming, true, __ATOMIC_SEQ_CST);
	int number = sampler_signal();
	if (asked->sent || is_blocked(asked->id, number)) {
		missed = !asked->sent;
	} else {
		/* Sequentially consistent with the handler, see there. */
		__atomic_store_n(&response->requested, newest, __ATOMIC_SEQ_CST);
		asked->sent = __atomic_exchange_n(&response->on_way, (uint32_t)number, __ATOMIC_SEQ_CST) ==
		                      (uint32_t)number ||
		              send_unless_exec(asked, number);
		if (!asked->sent)
			__atomic_store_n(&response->on_way, 0, __ATOMIC_SEQ_CST);
	}
	if (self != NULL)
		__atomic_store_n(&self->arming, false, __ATOMIC_SEQ_CST);
	return !missed;
}

static bool ask_all(struct asked *asked, uint32_t count)
{
	bool all = true;

	for (uint32_t i = 0; i < count; i++)
		all &= ask(&asked[i]);
	return all;
}

/* --- waiting -------------------------------------------------------------------------- */

static bool has_answered(const struct asked *asked)
{
	/* Acquire: the answer. */
	return asked->sent && __atomic_load_n(&asked->slot->response.given, __ATOMIC_ACQUIRE) == newest;
}

static bool is_there(const struct asked *asked)
{
	return __atomic_load_n(&asked->slot->owner, __ATOMIC_ACQUIRE) == asked->id &&
	       syscall(SYS_tgkill, getpid(), asked->id, 0) == 0;
}

static uint32_t count_missing(const struct asked *asked, uint32_t count, bool look)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < count; i++)
		missing += asked[i].sent && !has_answered(&asked[i]) && (!look || is_there(&asked[i]));
	return missing;
}

static void wait_for_answers(const struct asked *asked, uint32_t count, uint64_t deadline)
{
	bool look = false;

	for (;;) {
		/* Acquire: before the look at them, so that none is slept through. */
		uint32_t answers = __atomic_load_n(&response_count, __ATOMIC_ACQUIRE);
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		if (count_missing(asked, count, look) == 0 || now >= deadline)
			return;
		struct timespec end = timespec_of_ns(now + LOOK_NS < deadline ? now + LOOK_NS : deadline);
		look = sys_futex_wait(&response_count, answers, &end) != 0 && errno == ETIMEDOUT;
	}
}

static void tell(const struct asked *asked, void (*each)(void *, const struct thread_stack *), void *context)
{
	const struct thread_response *response = &asked->slot->response;
	struct thread_stack stack = { .thread_id = asked->id };

	if (has_answered(asked)) {
		stack.query = response->query;
		stack.generation = response->generation;
		stack.truncated = response->truncated;
		stack.depth = response->depth;
		stack.trace = response->trace;
	} else if (!is_there(asked)) {
		return;
	}
	each(context, &stack);
}

static struct asked *find_threads(uint32_t *count)
{
	uint32_t slots = slots_count();
	struct asked *asked = calloc(slots + 1, sizeof(*asked));

	*count = 0;
	for (uint32_t i = 0; asked != NULL && i < slots; i++) {
		struct thread *slot = slots_get(i);
		uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
		if (owner != 0)
			asked[(*count)++] = (struct asked){ .slot = slot, .id = owner };
	}
	return asked;
}

void sampler_stacks(uint64_t timeout_ms, void (*each)(void *, const struct thread_stack *), void *context)
{
	int saved_errno = errno;
	struct asked *asked;
	uint32_t count;

	pthread_mutex_lock(&asking);
	asked = find_threads(&count);
	/* 0 is what a new slot has answered. */
	newest = newest + 1 != 0 ? newest + 1 : 1;
	if (sampler_ring() != NULL && timers_in_process() && sampler_keep_signal()) {
		uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + timeout_ms * NS_PER_MS;
		struct timespec moment = timespec_of_ns(LOOK_NS);
		if (!ask_all(asked, count)) {
			clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
			ask_all(asked, count);
		}
		wait_for_answers(asked, count, deadline);
	}
	for (uint32_t i = 0; i < count; i++)
		tell(&asked[i], each, context);
	pthread_mutex_unlock(&asking);
	free(asked);
	errno = saved_errno;
}

/* --- another program, another process ------------------------------------------------- */

void stacks_before_exec(void)
{
	const struct timespec moment = { .tv_nsec = 20000 };

	__atomic_store_n(&exec_at_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	/* A few microseconds, if whoever sends is not stopped himself. */
	for (int i = 0; i < 500 && __atomic_load_n(&sending, __ATOMIC_SEQ_CST) != 0; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
}

void stacks_after_fork(void)
{
	sending = 0;
	exec_at_ns = 0;
	if (thread_current != NULL)
		thread_current->response.on_way = 0;
}
