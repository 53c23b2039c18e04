/*
 * The signal, starting and stopping, and the stack of running queries.
 *
 * The signal is one of the real-time signals that the host left at their default.
 * They are tried from the upper end down, but for the last four: hosts count from
 * SIGRTMIN up, valgrind and qemu keep the last for themselves. If the host has
 * handlers for all of them one is shared: what is not ours goes to the handler that
 * was there. SA_ONSTACK because hosts such as Go's have stacks on which no handler
 * may run; every other asynchronous signal is blocked while ours is handled, so
 * that a handler of the host's never runs inside. A host that sets the signal anew
 * (some set all of them to their default) gets it back at the next arming: with a
 * timer armed and no handler, the signal would end the process.
 */
#include "sampler/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "handler/sample.h"
#include "handler/timer.h"
#include "sampler/internal.h"

uint64_t sampler_counters[SAMPLER_COUNTERS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int signal_number;
static struct ring *ring; /* NULL while stopped */

/* Signals that a fault of the interrupted code raises; blocked, the kernel would
 * kill the process instead of calling the host's handler. */
static const int synchronous[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

#define KEPT_BY_OTHERS 4

/* --- the signal ------------------------------------------------------------------ */

struct wish {
	bool unblocked; /* in the calling thread */
	bool unused;    /* still at its default */
};

static bool grants(int number, const struct wish *wish, const sigset_t *blocked)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) != 0)
		return false;
	if (wish->unused && ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL))
		return false;
	return !wish->unblocked || sigismember(blocked, number) == 0;
}

static int choose_signal(void)
{
	static const struct wish wishes[] = { { true, true }, { false, true }, { false, false } };
	int count = SIGRTMAX - SIGRTMIN + 1;
	sigset_t blocked;

	sigemptyset(&blocked);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	for (size_t w = 0; w < sizeof(wishes) / sizeof(wishes[0]); w++) {
		/* Down from below those of others, and these at the end. */
		for (int i = 0; i < count; i++) {
			int down = (i + KEPT_BY_OTHERS) % count;
			if (grants(SIGRTMAX - down, &wishes[w], &blocked))
				return SIGRTMAX - down;
		}
	}
	return 0;
}

static bool is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == sample_on_signal;
}

static int install_handler(int number)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	struct sigaction previous;

	action.sa_sigaction = sample_on_signal;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
		sigdelset(&action.sa_mask, synchronous[i]);

	/* Known before the handler can need it, and once more if it changed between. */
	if (sigaction(number, NULL, &previous) != 0)
		return errno;
	if (is_ours(&previous))
		return 0;
	sample_set_previous(&previous);
	if (sigaction(number, &action, &previous) != 0)
		return errno;
	if (!is_ours(&previous))
		sample_set_previous(&previous);
	return 0;
}

static int choose_and_install(void)
{
	int number = choose_signal();
	int error = number == 0 ? EBUSY : install_handler(number);

	if (error == 0)
		__atomic_store_n(&signal_number, number, __ATOMIC_RELEASE);
	return error;
}

bool sampler_keep_signal(void)
{
	struct sigaction action;

	if (sigaction(signal_number, NULL, &action) != 0)
		return false;
	if (is_ours(&action))
		return true;
	/* Not waited for: who holds the lock may be waiting for the host. */
	if (pthread_mutex_trylock(&lock) != 0)
		return false;
	int error = install_handler(signal_number);
	pthread_mutex_unlock(&lock);
	return error == 0;
}

int sampler_signal(void)
{
	return __atomic_load_n(&signal_number, __ATOMIC_ACQUIRE);
}

/* --- start and stop ---------------------------------------------------------------- */

struct ring *sampler_ring(void)
{
	return __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
}

static int start(struct ring *new_ring)
{
	int error = threads_init();

	if (error == 0)
		error = fork_init();
	if (error == 0 && signal_number != 0)
		error = install_handler(signal_number);
	else if (error == 0)
		error = choose_and_install();
	if (error != 0)
		return error;
	timers_init();
	threads_set_ring(new_ring);
	__atomic_store_n(&ring, new_ring, __ATOMIC_RELEASE);
	sample_enable(true);
	return 0;
}

int sampler_init(struct ring *new_ring)
{
	int saved_errno = errno;

	pthread_mutex_lock(&lock);
	int error = ring != NULL ? 0 : start(new_ring);
	pthread_mutex_unlock(&lock);
	errno = saved_errno;
	return error;
}

void sampler_stop(void)
{
	pthread_mutex_lock(&lock);
	/* Timers that are armed disarm themselves at their next signal. */
	sample_enable(false);
	__atomic_store_n(&ring, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

void sampler_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	for (int which = 0; which < SAMPLER_COUNTERS; which++)
		counter_set((enum sampler_counter)which, 0);
	counter_set(SAMPLER_SLOTS, thread_slots());
	counter_set(SAMPLER_THREADS, thread_current != NULL);
	timers_after_fork();
}

#define QUIESCE_LIMIT_NS NS_PER_S
#define QUIESCE_PAUSE_NS 20000

bool sampler_quiesce(void)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + QUIESCE_LIMIT_NS;
	uint32_t slots = thread_slots();
	static uint32_t fence;

	/* What the caller stored comes before the looks at the handlers. */
	__atomic_fetch_add(&fence, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < slots; i++) {
		struct thread *slot = thread_slot(i);
		uint32_t done = __atomic_load_n(&slot->handlers_done, __ATOMIC_SEQ_CST);

		while (slot != thread_current &&
		       __atomic_load_n(&slot->in_handler, __ATOMIC_SEQ_CST) != 0 &&
		       __atomic_load_n(&slot->handlers_done, __ATOMIC_ACQUIRE) == done) {
			struct timespec pause = timespec_of_ns(QUIESCE_PAUSE_NS);
			if (clock_ns(CLOCK_MONOTONIC) > deadline)
				return false;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		}
	}
	return true;
}

uint64_t sampler_counter(enum sampler_counter which)
{
	return __atomic_load_n(&sampler_counters[which], __ATOMIC_RELAXED);
}

/* --- running queries ------------------------------------------------------------------ */

void sampler_push(struct thread *thread, const struct query_tag *tag)
{
	uint32_t nesting = thread->nesting;

	if (nesting < QUERY_NESTING)
		thread->queries[nesting] = *tag;
	HANDLER_BARRIER();
	/* Before the look at the timers: a signal in between finds the query, so it
	 * cannot disarm what was just seen armed. */
	thread->nesting = nesting + 1;
	if (nesting < QUERY_NESTING)
		timers_follow(thread, tag);
}

void sampler_pop(struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	if (nesting == 0)
		return;
	thread->nesting = nesting - 1;
	/* The query around it may want other periods. */
	if (nesting > 1 && nesting <= QUERY_NESTING)
		timers_follow(thread, &thread->queries[nesting - 2]);
}

const struct query_tag *sampler_top(const struct thread *thread)
{
	uint32_t nesting = thread->nesting;

	if (nesting == 0)
		return NULL;
	return &thread->queries[(nesting < QUERY_NESTING ? nesting : QUERY_NESTING) - 1];
}
