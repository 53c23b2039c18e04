/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a sample without its signal: the whole handler, from the signal to the record in the ring,
 * compared with a handler that does nothing.
 *
 *   tools/bench --all handler
 *
 * The thread sends the signal to itself, so the figures contain no timer interrupt. A timer's signal costs
 * the kernel more, and the handler's share of it is smaller.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "handler/dispatch.h"
#include "handler/forward.h"
#include "wire/ledger.h"
#include "handler/sample.h"
#include "modules/modules.h"
#include "query/query.h"
#include "collect/ledger_reader.h"
#include "collect/ring_reader.h"
#include "process/start.h"
#include "collect/state.h"
#include "timers/threads.h"

#define ROUNDS 500
#define REPEATS 60

static struct ring *ring;
static struct thread *thread;
static struct query_run run;
static volatile int sink;
static pid_t process;

static void do_nothing(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

static void send(int number)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = SI_TIMER;
	info.si_value.sival_ptr = &thread->timers[TIMER_CPU];
	syscall(SYS_rt_tgsigqueueinfo, process, thread->id, number, &info);
}

static int depth;

static void drain(void)
{
	const void *record;
	unsigned kind;
	size_t size;

	while ((record = ring_peek(ring, &kind, &size))) {
		if (kind == RECORD_SAMPLE)
			depth = ((const struct sample_record *)record)->depth;
		ring_consume(ring);
	}
}

/* Sends from one of two calls, so that the stack can differ between two samples. */
__attribute__((noinline)) static void send_here(int number)
{
	send(number);
	sink++;
}

__attribute__((noinline)) static void send_there(int number)
{
	send(number);
	sink += 2;
}

static double measure(int number, bool changing)
{
	const uint64_t start = now_ns();

	for (int i = 0; i < ROUNDS; i++)
		(changing && i % 2 != 0 ? send_there : send_here)(number);
	return (double)(now_ns() - start) / ROUNDS;
}

static void measure_all(void)
{
	const int ours = sampler_signal(), empty = ours == SIGRTMAX ? ours - 1 : SIGRTMAX;
	struct sigaction action = { .sa_sigaction = do_nothing, .sa_flags = SA_SIGINFO | SA_RESTART };
	static const struct {
		const char *name;
		bool ours, changing;
	} ways[] = {
		{ "empty handler", false, false },
		{ "ours, same stack", true, false },
		{ "ours, leaf changes", true, true },
	};
	double best[3] = { 1e30, 1e30, 1e30 };
	const uint64_t stored = ledger_read(LEDGER_STORED);

	sigfillset(&action.sa_mask);
	sigaction(empty, &action, NULL);
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		for (int way = 0; way < 3; way++) {
			drain();
			const double each = measure(ways[way].ours ? ours : empty, ways[way].changing);
			best[way] = each < best[way] ? each : best[way];
		}
	}
	const uint64_t count = ledger_read(LEDGER_STORED) - stored;
	printf("%llu samples stored of %d, %d frames each\n", (unsigned long long)count, 2 * ROUNDS * REPEATS,
	       depth);
	for (int way = 0; way < 3; way++)
		printf("  %-20s %6.0f ns a signal, beyond the empty one's: %5.0f ns, x %.2f (budget 0.30)\n",
		       ways[way].name, best[way], best[way] - best[0], (best[way] - best[0]) / best[0]);
}

__attribute__((noinline)) static int recurse(int n)
{
	int (*volatile self)(int) = recurse;

	if (n == 0)
		measure_all();
	else
		self(n - 1);
	return sink++;
}

static void *run_thread(void *argument)
{
	thread = sampler_thread();
	if (thread == NULL)
		return argument;
	/* A query with a long period, whose timers are not armed. */
	thread->queries[0] = (struct query_tag){
		.key = { 1, 2 },
		.period_ns = { [TIMER_CPU] = 1000000, [TIMER_REAL] = 1000000 },
		.counts = &run.counts,
	};
	thread->timers[TIMER_CPU].period_ns = 1000000;
	thread->timers[TIMER_CPU].stretch = 1;
	thread->timers[TIMER_CPU].repeats = true;
	thread->timers[TIMER_CPU].armed = true;
	thread->nesting = 1;
	recurse(23);
	thread->nesting = 0;
	return NULL;
}

int main(void)
{
	pthread_t id;

	ring = ring_create(8 << 20);
	if (ring == NULL || sampler_init(ring) != 0 || modules_init() != 0)
		return 2;
	process = getpid();
	pthread_create(&id, NULL, run_thread, NULL);
	pthread_join(id, NULL);
	return 0;
}
