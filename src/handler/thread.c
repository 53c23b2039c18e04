/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/thread.h"

#include <signal.h>

__thread struct thread *thread_current;
DEFINE_ADDRESS_OF_RECORDER(struct thread *, thread_current)
__thread struct span_current span_current;

#define SLOT_ALIGN 64 /* a cache line: neighbours' counters do not share one */

char *thread_blocks[THREAD_BLOCKS];
uint32_t thread_block_count;
uint64_t thread_slotless_counters[LEDGER_COUNTERS];

/* Relaxed: counters imply nothing about other memory. Atomic, because other threads read them. */
void thread_count(struct thread *thread, enum ledger_counter which, uint64_t by)
{
	uint64_t *of = thread ? thread->handler.counters : thread_slotless_counters;

	__atomic_fetch_add(&of[which], by, __ATOMIC_RELAXED);
}

size_t thread_slot_bytes(void)
{
	size_t bytes = sizeof(struct thread) + unwind_memo_bytes;

	return (bytes + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1);
}

/* Where in its slot `cookie` points, SIZE_MAX when it is in none. */
static size_t offset_in_slot(const void *cookie)
{
	uintptr_t address = (uintptr_t)cookie;
	size_t bytes = thread_slot_bytes();
	/* Acquire: the blocks. */
	uint32_t count = __atomic_load_n(&thread_block_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++) {
		uintptr_t offset = address - (uintptr_t)thread_blocks[i];
		if (offset < THREADS_PER_BLOCK * bytes)
			return offset % bytes;
	}
	return SIZE_MAX;
}

bool thread_owns_signal(int code, const void *cookie)
{
	size_t inside = offset_in_slot(cookie), in_timers = inside - offsetof(struct thread, timers);

	if (code == SI_QUEUE)
		return inside == offsetof(struct thread, response);
	return code == SI_TIMER && in_timers < sizeof(((struct thread *)0)->timers) &&
	       in_timers % sizeof(struct thread_timer) == 0;
}

/* A handler that a handler of the host's for a synchronous signal left by a longjmp does not
 * count as running: its frame is not above this one, as a running one's would be. */
bool thread_enter_handler(struct thread *thread, uintptr_t frame)
{
	if (thread->handler.is_running != 0 && frame < thread->handler.frame)
		return false;
	thread->handler.frame = frame;
	/* Sequentially consistent: a thread that replaces data of handlers does that first and
	 * checks for running handlers afterwards (sampler_quiesce). */
	__atomic_store_n(&thread->handler.is_running, 1, __ATOMIC_SEQ_CST);
	return true;
}

void thread_leave_handler(struct thread *thread)
{
	/* Release: what the handler read was read before. */
	__atomic_store_n(&thread->handler.is_running, 0, __ATOMIC_RELEASE);
}
