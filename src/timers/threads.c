/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread has which slot, from its first query to its end.
 *
 * A slot is released when the destructor of a thread-specific key runs. A later destructor may run a
 * query again: the thread then gets a slot once more. Slots that no destructor releases (of a thread
 * that ended by the bare system call, or in its last round of destructors) are found by
 * sampler_reap().
 */
#include "timers/threads.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/cancel.h"
#include "base/own_process.h"
#include "base/sys.h"
#include "base/thread_key.h"
#include "collect/open_waits.h"
#include "collect/slots.h"
#include "collect/state.h"
#include "handler/outside.h"
#include "handler/ring.h"
#include "timers/context.h"
#include "timers/nesting.h"
#include "timers/random.h"
#include "timers/signal.h"
#include "timers/timers.h"
#include "wire/thread_record.h"

#define NAME_INTERVAL_NS NS_PER_S

/* How many threads are checked for existence in one step. */
#define REAP_MOST 1024u
#define REAP_INTERVAL_NS NS_PER_S

static __thread bool excluded __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static void (*notify)(void), (*notify_company)(void); /* atomic */

void threads_notify(void (*call)(void))
{
	__atomic_store_n(&notify, call, __ATOMIC_RELEASE);
}

void threads_notify_company(void (*call)(void))
{
	__atomic_store_n(&notify_company, call, __ATOMIC_RELEASE);
}

/* The slot's timers go, then the slot. Called only by the thread that cleared `owner`. */
static void free_slot(struct thread *slot)
{
	timers_delete(slot);
	nesting_set(slot, 0);
	__atomic_store_n(&slot->waiting->since, 0, __ATOMIC_RELAXED);
	/* Atomic: sampler_quiesce() may be looking. */
	__atomic_store_n(&slot->handler.is_running, 0, __ATOMIC_RELEASE);
	counter_add(SAMPLER_THREADS, -1);
	slots_release(slot);
}

/* True for one caller only, however many try. */
static bool disown(struct thread *slot, uint32_t owner)
{
	return __atomic_compare_exchange_n(&slot->owner, &owner, 0, false, __ATOMIC_ACQUIRE,
	                                   __ATOMIC_RELAXED);
}

/* --- a thread comes ----------------------------------------------------------------- */

/* Without a limit (ulimit -s unlimited) the main thread's stack may grow down to the heap, which
 * grows up: coroutines whose stacks are there would seem to run on the thread's own. */
#define STACK_MOST ((size_t)64 << 30)

#if defined(__GLIBC__)
static size_t stack_may_grow_to(uintptr_t end, size_t bytes)
{
	(void)end;
	return bytes;
}
#else
/* The kernel maps nothing else so close to the first thread's stack. */
#define STACK_GAP ((uintptr_t)128 << 20)

/* musl reports what is mapped of the first thread's stack by now. The program's arguments are above. */
static size_t stack_may_grow_to(uintptr_t end, size_t bytes)
{
	const uintptr_t arguments = getauxval(AT_RANDOM), page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (arguments < end - page || arguments - end + page >= STACK_GAP ||
	    own_call_is_forbidden(SYS_prlimit64) || getrlimit(RLIMIT_STACK, &limit))
		return bytes;
	return limit.rlim_cur <= bytes ? bytes : limit.rlim_cur < STACK_GAP ? limit.rlim_cur : STACK_GAP;
}
#endif

/* The thread's stack, or no bounds. The main thread's lower end is where its stack
 * may grow to; glibc reads /proc/self/maps for it, once. */
static struct unwind_stack find_stack(void)
{
	struct unwind_stack stack = { 0, 0 };
	pthread_attr_t attributes;
	void *start;
	size_t bytes;

	/* What libc calls for it. */
	if (own_call_is_forbidden(SYS_sched_getaffinity) || own_call_is_forbidden(SYS_openat) ||
	    own_call_is_forbidden(SYS_newfstatat) || own_call_is_forbidden(SYS_read) ||
	    own_call_is_forbidden(SYS_close) || own_call_is_forbidden(SYS_prlimit64) ||
	    own_call_is_forbidden(SYS_mmap) || own_call_is_forbidden(SYS_munmap)
#if !defined(__GLIBC__)
	    || own_call_is_forbidden(SYS_mremap)
#endif
	)
		return stack;
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return stack;
	if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
		stack.end = (uintptr_t)start + bytes;
		bytes = stack_may_grow_to(stack.end, bytes);
		stack.start = stack.end - (bytes < STACK_MOST ? bytes : STACK_MOST);
	}
	pthread_attr_destroy(&attributes);
	return stack;
}

static bool is_signal_blocked(void)
{
	sigset_t blocked;

	return !own_call_is_forbidden(SYS_rt_sigprocmask) &&
	       pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
	       sigismember(&blocked, sampler_signal()) == 1;
}

/* The readings are of the thread that had the slot, or of the parent. */
static void forget_cpu_clock(struct thread *thread)
{
	thread->cpu_read_ns = thread->cpu_read_at_ns = thread->cpu_from_ns = 0;
	thread->cpu_base_at_ns = thread->seen_ns = 0;
}

static void fill_slot(struct thread *slot)
{
	slot->id = sys_gettid();
	/* Relaxed: a request to the slot's previous thread may read it. */
	__atomic_store_n(&slot->began_blocked, is_signal_blocked(), __ATOMIC_RELAXED);
	slot->context_at = 0;
	slot->stack = find_stack();
	__atomic_store_n(&slot->ring, sampler_ring(), __ATOMIC_RELEASE);
	nesting_set(slot, 0);
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		TIMER_SET(&slot->timers[clock], period_ns, 0); /* a new thread, a new phase */
		slot->timers[clock].whole = false;
	}
	slot->named = false;
	slot->name_checked_ns = 0;
	slot->retry_ns = slot->retry_pause_ns = 0;
	slot->newest_key = 0;
	slot->clock = (struct fast_clock){ .ns = 0 };
	forget_cpu_clock(slot);
	slot->is_worker = false;
	slot->wait = (struct thread_wait){ 0 };
	slot->waiting = open_waits_find(slot);
	*slot->waiting = (struct wait_now){ 0 };
	slot->account = (struct thread_account){ 0 };
	outside_forget(slot);
	/* Signals that were on their way to another thread went with it. */
	__atomic_store_n(&slot->response.in_flight, 0, __ATOMIC_SEQ_CST);
	/* The old thread's frames: its stack may be gone, or another thread's. The rest is memory that a
	 * thread with short stacks never touches. */
	memset(thread_memo(slot), 0, unwind_memo_head_bytes);
	if (slot->random == 0) /* otherwise it continues with the numbers of the previous thread */
		random_seed(slot);
	/* Release: sampler_reap() on another thread reads the slot through it. */
	__atomic_store_n(&slot->owner, slot->id, __ATOMIC_RELEASE);
}

/* New threads are rare enough. */
static void reap_at_times(void)
{
	static uint64_t reaped_ns; /* atomic */
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE),
		 before = __atomic_load_n(&reaped_ns, __ATOMIC_RELAXED);

	if (now - before > REAP_INTERVAL_NS &&
	    __atomic_compare_exchange_n(&reaped_ns, &before, now, false, __ATOMIC_RELAXED,
	                                __ATOMIC_RELAXED) &&
	    before != 0)
		sampler_reap();
}

static struct thread *register_thread(void)
{
	struct thread *slot = own_call_is_forbidden(SYS_gettid) ? NULL : slots_acquire();

	if (!slot) {
		counter_add(SAMPLER_THREADS_FAILED, 1);
		return NULL;
	}
	fill_slot(slot);
	counter_add(SAMPLER_THREADS, 1);
	reap_at_times();
	if (thread_current) {
		/* A handler of the host ran a query meanwhile: the thread has one. */
		if (disown(slot, slot->id))
			free_slot(slot);
		return thread_current;
	}
	HANDLER_BARRIER();
	thread_current = slot;
	/* When it fails (no key, no memory) the slot is reaped. */
	pthread_setspecific(key, slot);
	/* Counted, not changed, because the mask belongs to the host. */
	counter_add(SAMPLER_THREADS_BLOCKED, slot->began_blocked);
	threads_publish_name(slot);
	if (__atomic_load_n(&notify, __ATOMIC_ACQUIRE))
		notify();
	if (sampler_counter(SAMPLER_THREADS) > 1 && __atomic_load_n(&notify_company, __ATOMIC_ACQUIRE))
		notify_company();
	return slot;
}

struct thread *sampler_find_thread(void)
{
	struct thread *thread = thread_current;

	if (__builtin_expect(!sampler_ring(), 0))
		return NULL;
	if (__builtin_expect(thread != NULL, 1))
		return thread;
	if (excluded)
		return NULL;
	int saved_errno = errno, cancel = cancel_hold();
	thread = register_thread();
	cancel_release(cancel);
	errno = saved_errno;
	return thread;
}

/* Publishes the thread's name if it has changed. */
static void publish_name(struct thread *thread, struct ring *ring)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	if (__atomic_load_n(&thread->named, __ATOMIC_RELAXED) &&
	    memcmp(name, thread->name, sizeof(name)) == 0)
		return;
	struct thread_record *record = ring_reserve(ring, sizeof(*record));
	/* Without room in the ring, it tries again at a query after the next signal. */
	__atomic_store_n(&thread->named, record != NULL, __ATOMIC_RELAXED);
	if (!record)
		return;
	memset(record, 0, sizeof(*record));
	record->thread_id = thread->id;
	memcpy(record->name, name, sizeof(name));
	memcpy(thread->name, name, sizeof(name));
	ring_commit(ring, record, RECORD_THREAD);
}

void threads_publish_name(struct thread *thread)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
	struct ring *ring = sampler_ring();

	thread->name_due = false;
	if (!ring || (__atomic_load_n(&thread->named, __ATOMIC_RELAXED) &&
	              now - thread->name_checked_ns < NAME_INTERVAL_NS))
		return;
	thread->name_checked_ns = now;
	context_follow(thread);
	publish_name(thread, ring);
}

/* --- a thread goes --------------------------------------------------------------------- */

static void on_thread_end(void *unused)
{
	struct thread *slot = thread_current;

	(void)unused;
	if (!slot)
		return;
	/* From here on signals find no slot: they are late. */
	thread_current = NULL;
	HANDLER_BARRIER();
	if (disown(slot, slot->id))
		free_slot(slot);
}

void sampler_exclude_thread(void)
{
	excluded = true;
	on_thread_end(NULL);
}

void sampler_include_thread(void)
{
	excluded = false;
}

void sampler_reap(void)
{
	static uint32_t next; /* atomic */
	uint32_t slots = slots_count(), most = slots < REAP_MOST ? slots : REAP_MOST;
	uint32_t first = __atomic_fetch_add(&next, most, __ATOMIC_RELAXED);
	int saved_errno = errno;

	if (sampler_ring() && own_process_is_here())
		sampler_keep_signal();
	for (uint32_t i = 0; i < most; i++) {
		struct thread *slot = slots_get((first + i) % slots);
		uint32_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
		if (owner != 0 && syscall(SYS_tgkill, getpid(), owner, 0) != 0 && errno == ESRCH &&
		    disown(slot, owner))
			free_slot(slot);
	}
	errno = saved_errno;
}

/* --- all threads ------------------------------------------------------------------------- */

void threads_delete_timers(void)
{
	for (uint32_t i = 0; i < slots_count(); i++)
		timers_delete(slots_get(i));
}

int threads_init(void)
{
	static bool made;
	int error = made ? 0 : thread_key_create(&key, on_thread_end);

	made |= error == 0;
	return error;
}

void threads_set_ring(struct ring *ring)
{
	uint32_t slots = slots_count();

	for (uint32_t i = 0; i < slots; i++) {
		/* The ring may be stored in another file, which has no name of the thread. */
		__atomic_store_n(&slots_get(i)->named, false, __ATOMIC_RELAXED);
		__atomic_store_n(&slots_get(i)->ring, ring, __ATOMIC_RELEASE);
	}
}

void threads_after_fork(void)
{
	uint32_t slots = slots_count();
	struct thread *self = thread_current;

	slots_forget_free();
	for (uint32_t i = slots; i-- > 0;) {
		struct thread *slot = slots_get(i);
		timers_forget(slot);
		slot->handler.is_running = 0;
		slot->arming = false;
		slot->waiting = open_waits_find(slot); /* the parent's may be elsewhere */
		if (slot == self)
			continue;
		slot->owner = 0;
		slot->random = 0;
		nesting_set(slot, 0);
		slots_release(slot);
	}
	if (!self)
		return;
	self->id = self->owner = sys_gettid();
	self->retry_ns = self->retry_pause_ns = 0;
	self->named = false;
	forget_cpu_clock(self);
	self->account = (struct thread_account){ 0 };
	if (!self->nesting)
		outside_forget_work(self);
	random_seed(self); /* or parent and child would make the same keys */
	/* No more than the name: another thread may have had the loader's lock, which no thread releases in
	 * the child. */
	if (sampler_ring())
		publish_name(self, sampler_ring());
}
