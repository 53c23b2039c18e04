/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/stack_limit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#define STACK_BYTES (8u << 20)

struct call {
	int (*run)(int argc, char **argv);
	int argc, result;
	char **argv;
	sigset_t blocked;
};

static void *run_on_thread(void *context)
{
	struct call *call = context;

	pthread_sigmask(SIG_SETMASK, &call->blocked, NULL);
	call->result = call->run(call->argc, call->argv);
	return NULL;
}

int stack_limit_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct call call = { .run = run, .argc = argc, .argv = argv };
	struct rlimit limit;
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	int error;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES)
		return run(argc, argv);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
	/* Signals are the thread's: this one only waits. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &call.blocked);
	error = pthread_create(&thread, NULL, run_on_thread, &call);
	if (!error)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &call.blocked, NULL);
	return error ? run(argc, argv) : call.result;
}
