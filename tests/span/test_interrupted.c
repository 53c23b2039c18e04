/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler of the host ends the process, or the thread forks, while queryprof works on a trace.
 * Nothing is freed or waited for there, and no span is handed over twice. The linker wraps free().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "queryprof.h"
#include "span/chunk.h"
#include "span/context.h"
#include "span/keep.h"
#include "span/site.h"

/* Per thread, because the flusher frees memory, too. */
static _Thread_local volatile sig_atomic_t raises, frees;

void __real_free(void *memory);
void __wrap_free(void *memory);

void __wrap_free(void *memory)
{
	frees++;
	if (raises) {
		raises = 0;
		raise(SIGUSR1);
	}
	__real_free(memory);
}

/* Registered before queryprof's handler, so that the child runs it first. */
static void begin_of_child(void)
{
	frees = 0;
}

__attribute__((constructor(101))) static void register_first(void)
{
	pthread_atfork(NULL, NULL, begin_of_child);
}

static volatile sig_atomic_t frees_at_end;

/* Does the work that _exit() does before the process ends. */
static void end_process(int number)
{
	int before = frees;

	(void)number;
	contexts_before_end();
	frees_at_end = frees - before;
}

static int start(void **state)
{
	(void)state;
	alarm(120); /* ends a test that hangs */
	signal(SIGUSR1, end_process);
	return qp_init(NULL);
}

static int stop(void **state)
{
	(void)state;
	return qp_shutdown();
}

struct kept {
	uint64_t traces, spans;
};

static struct kept kept_now(void)
{
	return (struct kept){ keep_counter(TRACES_KEPT), keep_counter(SPANS_RECORDED) };
}

static void assert_kept(struct kept before, uint64_t traces, uint64_t spans)
{
	struct kept now = kept_now();

	assert_int_equal(now.traces - before.traces, traces);
	assert_int_equal(now.spans - before.spans, spans);
}

static void begin(void)
{
	if (qp_trace_begin(NULL))
		fail_msg("%s", qp_error());
}

static void two_spans(void)
{
	QP_SPAN("outer");
	QP_SPAN("inner");
}

/* A context with links owns memory, which its end frees. */
static void a_signal_within_the_end_of_a_trace(void **state)
{
	struct kept before = kept_now();
	qp_span_handle handles[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin();
		handles[i] = qp_span_fork();
		qp_trace_end();
	}
	begin();
	two_spans();
	if (qp_span_follow(handles, 3))
		fail_msg("%s", qp_error());
	two_spans();
	raises = 1;
	qp_trace_end();
	assert_int_equal(raises, 0);
	assert_int_equal(frees_at_end, 0);
	/* The handler has handed over the outer trace, but the process has not ended. */
	assert_null(qp_span_here);
	qp_trace_end();
	assert_kept(before, 4, 4);
	for (int i = 0; i < 4; i++) { /* no chunk is in the list twice */
		begin();
		two_spans();
	}
	for (int i = 0; i < 4; i++)
		qp_trace_end();
	assert_kept(before, 8, 12);
}

static void a_signal_while_a_site_is_added(void **state)
{
	struct mutex *lock = lock_at(LOCK_SPAN_SITES)->mutex;
	struct kept before = kept_now();

	(void)state;
	begin();
	two_spans();
	sites_publish_again(); /* ensures that there is something to publish */
	lock_acquire(lock);
	raise(SIGUSR1);
	lock_release(lock);
	assert_int_equal(frees_at_end, 0);
	assert_kept(before, 1, 2);
	qp_trace_end();
	assert_kept(before, 1, 2);
}

/* Another trace used the array before. */
static void a_signal_before_a_span_is_written(void **state)
{
	struct kept before = kept_now();

	(void)state;
	begin();
	two_spans();
	qp_trace_end();
	begin();
	chunk_acquire(qp_span_here->chunk, 1);
	raise(SIGUSR1);
	assert_kept(before, 2, 2);
	qp_trace_end();
	assert_kept(before, 2, 2);
}

static void the_end_comes_once(void **state)
{
	struct kept before = kept_now();

	(void)state;
	begin();
	two_spans();
	begin();
	two_spans();
	raise(SIGUSR1);
	two_spans();
	raise(SIGUSR1);
	qp_trace_end();
	qp_trace_end();
	assert_kept(before, 2, 4);
}

/* Another thread may have held the allocator's locks at the fork. */
static void a_forked_child_frees_nothing(void **state)
{
	pid_t child;
	int status;

	(void)state;
	for (int i = 0; i < 8; i++) /* more arrays than a thread keeps */
		begin();
	child = fork();
	if (!child)
		_exit(frees ? 1 : qp_span_here ? 2 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 8; i++)
		qp_trace_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_within_the_end_of_a_trace),
		cmocka_unit_test(a_signal_while_a_site_is_added),
		cmocka_unit_test(a_signal_before_a_span_is_written),
		cmocka_unit_test(the_end_comes_once),
		cmocka_unit_test(a_forked_child_frees_nothing),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
