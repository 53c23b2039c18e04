/* SPDX-License-Identifier: Apache-2.0 */
#include "alone.h"

#include <errno.h>
#include <sys/wait.h>

struct ring *ring;
struct query_run run;

void begin(void)
{
	ring = ring_create(4 << 20);
	CHECK(ring != NULL);
	CHECK(sampler_init(ring) == 0);
}

int status_of(void (*test)(void))
{
	int status = -1;

	fflush(stdout);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		test();
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void push(struct thread *thread, uint64_t cpu_period_ns, uint64_t real_period_ns)
{
	struct query_tag tag;

	query_start(&run, thread);
	tag = tag_of(&run, cpu_period_ns, real_period_ns);
	sampler_push(thread, &tag);
}

uint64_t stored(void)
{
	return ledger_read(LEDGER_STORED);
}

void burn_for_samples(uint64_t count)
{
	uint64_t goal = stored() + count;

	while (stored() < goal)
		burn(1000000);
}

void wait_for_idle(const struct thread *thread)
{
	while (thread->timers[TIMER_CPU].armed || thread->timers[TIMER_REAL].armed)
		burn(1000000);
}
