/*
 * The signal handler: whose signal is it, what runs, how much does it stand for,
 * the stack, the record. Or, when somebody asked, the stack alone.
 *
 * It runs with every other asynchronous signal blocked, so no handler of the host
 * can interrupt it, or leave it by a long jump with a record half written. It takes
 * no lock, allocates nothing and keeps errno. Everything it writes belongs to the
 * thread that it interrupted, but for the ring and for a query's counts.
 */
#include "handler/sample.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "handler/ring.h"
#include "handler/running.h"
#include "handler/unwind/stack_copy.h"
#include "base/sys.h"
#include "handler/timer.h"

_Static_assert((int)SAMPLE_COUNTERS == THREAD_COUNTERS, "one counter of a slot for each kind");

static volatile bool enabled;

/* Signals on threads without a slot: late or foreign ones. */
static uint64_t slotless[SAMPLE_COUNTERS];

/* What was there before us. Two, so that one can be written while handlers read the
 * other. */
static struct sigaction previous_actions[2];
static _Atomic unsigned previous_index;
static atomic_bool previous_spent; /* it had SA_RESETHAND and has run */

/* --- the ledger ------------------------------------------------------------------ */

/* Relaxed: counters say nothing about other memory. Atomic because they are read
 * from other threads. */
static void count(struct thread *thread, enum sample_counter which, uint64_t by)
{
	uint64_t *counter = thread != NULL ? &thread->counters[which] : &slotless[which];

	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

uint64_t sample_counter(enum sample_counter which)
{
	uint64_t sum = __atomic_load_n(&slotless[which], __ATOMIC_RELAXED);
	uint32_t slots = thread_slots();

	for (uint32_t i = 0; i < slots; i++)
		sum += __atomic_load_n(&thread_slot(i)->counters[which], __ATOMIC_RELAXED);
	return sum;
}

void sample_forget(void)
{
	uint32_t slots = thread_slots();

	stack_copy_reset_in_child();
	memset(slotless, 0, sizeof(slotless));
	for (uint32_t i = 0; i < slots; i++)
		memset(thread_slot(i)->counters, 0, sizeof(slotless));
}

void sample_enable(bool on)
{
	/* Sequentially consistent against the handler, which first says that it runs
	 * and then looks here. */
	__atomic_store_n(&enabled, on, __ATOMIC_SEQ_CST);
}

/* --- signals that are not ours ---------------------------------------------------- */

void sample_set_previous(const struct sigaction *action)
{
	unsigned next = 1 - atomic_load(&previous_index);

	previous_actions[next] = *action;
	atomic_store(&previous_spent, false);
	atomic_store(&previous_index, next);
}

/* What the default action of a real-time signal is: the process ends. The signal is
 * sent again, so that its parent sees what it would have seen without us. */
static void act_by_default(int signal, siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	uint64_t set = 1ull << (signal - 1);

	sigaction(signal, &action, NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), sys_gettid(), signal, info);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, sizeof(set));
}

/* Blocks what would be blocked if the previous handler had been called directly. */
static void take_previous_mask(int signal, const struct sigaction *previous, const ucontext_t *context)
{
	uint64_t interrupted, own; /* the kernel's 64 signals are the first word */

	memcpy(&interrupted, &context->uc_sigmask, sizeof(interrupted));
	memcpy(&own, &previous->sa_mask, sizeof(own));
	own |= interrupted;
	if ((previous->sa_flags & SA_NODEFER) == 0)
		own |= 1ull << (signal - 1);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &own, NULL, sizeof(own));
}

/* Hands the signal to the handler that was there. What cannot be had: system calls
 * restart although it may not have asked for SA_RESTART, and it runs on the
 * alternate stack if there is one. It may leave by a long jump. */
static void forward(int signal, siginfo_t *info, void *ucontext)
{
	const struct sigaction *previous = &previous_actions[atomic_load(&previous_index)];

	if (previous->sa_handler == SIG_IGN)
		return;
	if (previous->sa_handler == SIG_DFL || atomic_load(&previous_spent)) {
		act_by_default(signal, info);
		return;
	}
	if ((previous->sa_flags & SA_RESETHAND) != 0)
		atomic_store(&previous_spent, true);
	if (ucontext != NULL)
		take_previous_mask(signal, previous, ucontext);
	if ((previous->sa_flags & SA_SIGINFO) != 0)
		previous->sa_sigaction(signal, info, ucontext);
	else
		previous->sa_handler(signal);
}

/* --- our own ------------------------------------------------------------------------ */

static void disarm(struct thread_timer *timer)
{
	/* A probe has fired its only signal. */
	if (timer->created && timer->armed && !timer->probing)
		sys_timer_settime(timer->id, 0, 0, 0);
	timer->probing = false;
	timer->hit_ns = 0;
	timer->armed = false;
}

/* The share of a new measurement in the mean, of one thread and of all. */
#define GAP_SHARE 16
#define GAP_SHARE_OF_ALL 64
#define GAP_MAX_TICKS 64
/* A short period's next point may pass while the timer is being set; the kernel then
 * tells it at once, and what lies between is no gap. */
#define GAP_MIN_NS 50000

static uint64_t mean_with(uint64_t mean, uint64_t value, int64_t share)
{
	return mean + (uint64_t)(((int64_t)value - (int64_t)mean) / share);
}

static void learn_gap(struct thread_timer *timer, enum trace_type type, uint64_t gap)
{
	uint64_t tick = timer_tick_ns[type];
	uint64_t usual = __atomic_load_n(&timer_usual_gap_ns, __ATOMIC_RELAXED);

	if (gap < GAP_MIN_NS)
		return;
	if (gap > GAP_MAX_TICKS * tick)
		gap = GAP_MAX_TICKS * tick;
	timer->gap_ns = mean_with(timer_gap(timer, type), gap, GAP_SHARE);
	/* Relaxed: of two threads at the same time one is enough. */
	__atomic_store_n(&timer_usual_gap_ns, mean_with(usual != 0 ? usual : tick, gap, GAP_SHARE_OF_ALL),
	                 __ATOMIC_RELAXED);
}

/* The first few probes and every fourth are followed by one that measures the gap. */
static bool must_measure(struct thread_timer *timer, enum trace_type type)
{
	return !timer_shows_gap(timer, type) && (timer->probes < GAP_SHARE || timer->probes % 4 == 0);
}

/* Points of the grid that a probe's signal stands for, and what comes next. */
static uint64_t take_probe(struct thread_timer *timer, enum trace_type type, bool running)
{
	bool measured = timer->hit_ns != 0;
	bool again = running && !measured && must_measure(timer, type);

	if (!running && !measured)
		return 0;
	uint64_t now = clock_ns(timer_clock(type));
	uint64_t window = measured ? now - timer->hit_ns : timer_gap(timer, type);
	if (measured)
		learn_gap(timer, type, window);
	timer->hit_ns = again ? now : 0;
	timer->probes++;
	timer->probing = again || !running;
	if (again)
		timer_set_to_probe(timer);
	else if (running)
		timer_set_on_grid(timer, now);
	return timer_points(timer, now, window);
}

/* More than every fifth late: the timer slows down. All of so many in time: it is faster
 * again. Any machine has the time for an interval of this length; if signals come late
 * then it is because other threads run. */
#define BEHIND_LATE 4
#define BEHIND_MOST 128
#define IN_TIME_MOST 4096
#define INTERVAL_ENOUGH_NS 100000

static void keep_pace(struct thread_timer *timer, bool overrun)
{
	uint32_t slowed = timer->slowed;

	if (timer->slowed == 0 && timer_interval(timer) >= INTERVAL_ENOUGH_NS)
		return;
	if (timer->period_ns == 0) /* of a timer that was deleted; it is being made anew */
		return;
	/* Late, too, when the way here alone took a good part of the interval. */
	uint64_t now = clock_ns(timer_clock(TRACE_REAL));
	bool behind = overrun || timer_since_point(timer, now) > timer_interval(timer) / 4;
	if (behind)
		timer->behind += BEHIND_LATE;
	else if (timer->behind > 0)
		timer->behind--;
	timer->in_time = behind ? 0 : timer->in_time + 1;
	if (timer->behind >= BEHIND_MOST && timer_interval(timer) < INTERVAL_ENOUGH_NS)
		slowed++;
	else if (timer->in_time >= IN_TIME_MOST && slowed > 0)
		slowed--;
	if (timer->behind > BEHIND_MOST)
		timer->behind = BEHIND_MOST;
	if (slowed == timer->slowed)
		return;
	timer->slowed = slowed;
	timer->behind = timer->in_time = 0;
	timer_set_on_grid(timer, now);
}

/* The periods that this signal stands for; 0: none has ended. */
static uint64_t take_weight(struct thread_timer *timer, enum trace_type type, const siginfo_t *info,
                            bool running)
{
	if (timer->probing)
		return take_probe(timer, type, running);

	/* The kernel caps si_overrun at INT_MAX. */
	uint64_t weight = 1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0);
	if (timer->whole)
		timer->told += weight;
	else if (timer_shows_gap(timer, type))
		learn_gap(timer, type, weight * timer->period_ns);
	if (type == TRACE_REAL) {
		bool overrun = weight > 1;
		weight <<= timer->slowed;
		keep_pace(timer, overrun);
	}
	return weight < UINT32_MAX ? weight : UINT32_MAX;
}

static void add(uint64_t *to, uint64_t by)
{
	__atomic_fetch_add(to, by, __ATOMIC_RELAXED);
}

/* The most frames that a record of this ring holds; a tiny ring takes fewer. */
static int max_depth(const struct ring *ring)
{
	size_t room = (ring_max_payload(ring) - sizeof(struct sample_record)) / sizeof(uint64_t);

	return room < TRACE_MAX_FRAMES ? (int)room : TRACE_MAX_FRAMES;
}

static void store_sample(struct thread *thread, struct ring *ring, const struct query_tag *tag,
                         enum trace_type type, uint32_t weight, uint64_t timestamp, const void *ucontext)
{
	struct query_counts *counts = tag->counts;

	/* Unwound beside the ring: the record is reserved with its exact size. */
	struct unwind_result trace =
		unwind_trace(ucontext, &thread->stack, thread_memo(thread), thread->trace, max_depth(ring));
	size_t trace_bytes = (size_t)trace.depth * sizeof(uint64_t);
	struct sample_record *record = ring_reserve(ring, sizeof(*record) + trace_bytes);
	if (record == NULL) {
		count(thread, SAMPLE_DROPPED, 1);
		add(&counts->dropped, 1);
		return;
	}

	int cpu = sched_getcpu();
	record->timestamp_ns = timestamp;
	record->period_ns = thread->timers[type].period_ns;
	record->query = tag->key;
	record->thread_id = thread->id;
	record->weight = weight;
	record->generation = trace.generation;
	record->cpu_id = cpu < 0 ? 0 : (uint32_t)cpu;
	record->fields = 0;
	record->depth = (uint16_t)trace.depth;
	record->trace_type = (uint8_t)type;
	record->flags = trace.truncated ? SAMPLE_TRUNCATED : 0;
	memcpy(record->trace, thread->trace, trace_bytes);
	ring_commit(ring, record, RECORD_SAMPLE);

	count(thread, SAMPLE_STORED, 1);
	count(thread, SAMPLE_OVERRUNS, weight - 1);
	add(&counts->samples[type], 1);
	add(&counts->weights[type], weight);
	if (trace.truncated) {
		count(thread, SAMPLE_CUT, 1);
		add(&counts->truncated, 1);
	}
}

#define BETWEEN_MAX_NS NS_PER_S

/* Between two steps of a query that nobody will start again in a way that we would
 * see: the timer keeps ticking in the host's code. On the clock of wall time only
 * for a while, as it interrupts the host's sleeps: a statement that is left open for
 * long has its Real samples again when the thread's next query starts. */
static void wait_between_steps(struct thread_timer *timer, enum trace_type type, uint64_t weight)
{
	timer->between_ns += weight * timer->period_ns;
	if (type == TRACE_REAL && timer->between_ns > BETWEEN_MAX_NS) {
		timer->between_ns = 0;
		disarm(timer);
	}
}

static void take_sample(struct thread *thread, enum trace_type type, const siginfo_t *info,
                        const void *ucontext)
{
	struct thread_timer *timer = &thread->timers[type];
	uint64_t timestamp = clock_ns(CLOCK_REALTIME);
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(ucontext), &waits);

	struct ring *ring = __atomic_load_n(&thread->ring, __ATOMIC_ACQUIRE);
	bool on = __atomic_load_n(&enabled, __ATOMIC_SEQ_CST) && ring != NULL;
	bool running = on && (tag != NULL ? tag->period_ns[type] != 0 : waits);

	uint64_t weight = take_weight(timer, type, info, running);
	if (!running) {
		disarm(timer);
		count(thread, SAMPLE_IDLE, 1);
		return;
	}
	if (tag == NULL)
		wait_between_steps(timer, type, weight);
	if (tag == NULL || weight == 0) {
		count(thread, SAMPLE_IDLE, 1);
		return;
	}
	timer->between_ns = 0;
	store_sample(thread, ring, tag, type, (uint32_t)weight, timestamp, ucontext);
}

/* --- a question -------------------------------------------------------------------- */

uint32_t sample_answers;

static void answer(struct thread *thread, const void *ucontext)
{
	struct thread_answer *to = &thread->answer;
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(ucontext), &waits);

	/* Sequentially consistent with the asker, who writes `wanted` and then looks whether
	 * a signal is on its way: this one answers whatever was wanted until now. */
	__atomic_store_n(&to->on_way, 0, __ATOMIC_SEQ_CST);
	uint32_t wanted = __atomic_load_n(&to->wanted, __ATOMIC_SEQ_CST);
	if (wanted == to->given) {
		count(thread, SAMPLE_LATE, 1);
		return;
	}
	struct unwind_result trace =
		unwind_trace(ucontext, &thread->stack, thread_memo(thread), to->trace, TRACE_MAX_FRAMES);
	to->depth = trace.depth;
	to->truncated = trace.truncated;
	to->generation = trace.generation;
	to->query = tag != NULL ? tag->key : (struct query_key){ 0, 0 };
	count(thread, SAMPLE_ASKED, 1);
	/* Release: the answer before its number. */
	__atomic_store_n(&to->given, wanted, __ATOMIC_RELEASE);
	__atomic_fetch_add(&sample_answers, 1, __ATOMIC_RELEASE);
	sys_futex_wake(&sample_answers);
}

/* --- which of them ------------------------------------------------------------------ */

/* The trace type whose timer the cookie is; -1: none of this thread's. Compares
 * pointers only, so a foreign cookie is never followed. */
static int find_type(const struct thread *thread, const void *cookie)
{
	for (int type = 0; thread != NULL && type < TRACE_TYPES; type++) {
		if (cookie == &thread->timers[type])
			return type;
	}
	return -1;
}

/* False inside a handler of the same thread. One that a handler of the host's for a
 * synchronous signal left by a long jump does not count: its frame is not above
 * ours, as a running one's would be. */
static bool enter_handler(struct thread *thread)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (thread->in_handler != 0 && frame < thread->handler_frame)
		return false;
	thread->handler_frame = frame;
	/* Sequentially consistent: whoever replaces what handlers use does that first
	 * and looks for running handlers afterwards (sampler_quiesce). */
	__atomic_store_n(&thread->in_handler, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* Release: what the handler read was read before. */
static void leave_handler(struct thread *thread)
{
	__atomic_fetch_add(&thread->handlers_done, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&thread->in_handler, 0, __ATOMIC_RELEASE);
}

void sample_on_signal(int signal, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;
	struct thread *thread = thread_current;
	const void *cookie = info->si_value.sival_ptr;
	int type = info->si_code == SI_TIMER ? find_type(thread, cookie) : -1;
	bool asked = info->si_code == SI_QUEUE && thread != NULL && cookie == &thread->answer;

	count(thread, SAMPLE_SIGNALS, 1);
	if (type < 0 && !asked) {
		bool ours = thread_owns_signal(info->si_code, cookie);
		count(thread, ours ? SAMPLE_LATE : SAMPLE_FOREIGN, 1);
		errno = saved_errno;
		if (!ours)
			forward(signal, info, ucontext); /* its errno is its own affair */
		return;
	}

	if (enter_handler(thread)) {
		if (asked)
			answer(thread, ucontext);
		else
			take_sample(thread, (enum trace_type)type, info, ucontext);
		leave_handler(thread);
	} else {
		count(thread, SAMPLE_REENTERED, 1);
	}
	errno = saved_errno;
}
