/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program: samples its main thread by wall time, and unwinds each sample with one of the
 * unwinders. At the end it prints the cost of the second half of the samples, when all code has been seen.
 * See unwind_sampling.
 *
 *  PROBE_PEER=memo PROBE_HZ=100 PROBE_SAMPLES=500 LD_PRELOAD=… program
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/thread_stack.h"
#include "base/code_map.h"
#include "modules/modules.h"
#include "modules/publish.h"
#include "unwind_peers.h"

#define MAX_SAMPLES 100000

static uint32_t cost_ns[MAX_SAMPLES];
static uint64_t frames;
static int wanted;
static volatile int taken;
static const struct peer *peer;

static void on_tick(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (taken == wanted)
		return;
	const unsigned side = publish_enter_reader();
	const uint64_t start = now_ns();
	const int depth = peer->walk(context);
	cost_ns[taken] = (uint32_t)(now_ns() - start);
	publish_leave_reader(side);
	frames += (uint64_t)depth;
	taken = taken + 1;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Keeps the map of code up to date, as the profiler's own thread would, and ends the
 * program. */
static void *wait_for_end(void *argument)
{
	const struct timespec pause = { 0, 50000000 };

	while (taken != wanted) {
		modules_refresh(false);
		nanosleep(&pause, NULL);
	}
	uint32_t *const kept = cost_ns + wanted / 2;
	const int count = wanted - wanted / 2;
	qsort(kept, (size_t)count, sizeof(kept[0]), compare);
	fprintf(stderr, "probe %-22s %5.1f frames  median %7.2f us  p99 %7.2f us\n", peer->name,
	        (double)frames / wanted, kept[count / 2] / 1e3, kept[count * 99 / 100] / 1e3);
	_exit(0);
	return argument;
}

__attribute__((constructor)) static void start(void)
{
	const char *key = getenv("PROBE_PEER"), *hz = getenv("PROBE_HZ"), *samples = getenv("PROBE_SAMPLES");
	struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	sigset_t all, before;
	pthread_t thread;
	timer_t timer;

	if (key == NULL || hz == NULL || samples == NULL || !peers_open(LLVM_MODULE))
		return;
	for (int i = 0; i < PEERS; i++)
		if (strcmp(peers[i].key, key) == 0)
			peer = &peers[i];
	wanted = atoi(samples) < MAX_SAMPLES ? atoi(samples) : MAX_SAMPLES;
	if (peer == NULL || peer->walk == NULL) {
		fprintf(stderr, "probe %-22s not installed\n", peer ? peer->name : key);
		_exit(0);
	}
	peer_stack = thread_stack();
	if (modules_init() != 0)
		return;

	/* glibc's opens libgcc at its first call, which a handler must not. */
	if (peer->by_itself)
		peer->walk(NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&thread, NULL, wait_for_end, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGPROF, &action, NULL);
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	const long period = 1000000000 / atol(hz);
	const struct itimerspec times = { { 0, period }, { 0, period } };
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		timer_settime(timer, 0, &times, NULL);
}
