/* SPDX-License-Identifier: Apache-2.0 */
#include "process/start.h"

#include <errno.h>

#include "base/lock.h"
#include "base/own_process.h"
#include "collect/state.h"
#include "handler/budget.h"
#include "handler/sample.h"
#include "process/fork.h"
#include "timers/signal.h"
#include "timers/threads.h"
#include "timers/timers.h"

LOCK_DEFINE(lock, LOCK_SAMPLER, .at_fork = LOCK_LEFT);

static int start(struct ring *ring)
{
	int error = threads_init();

	if (error == 0)
		error = fork_init();
	if (error == 0)
		error = signal_start();
	if (error != 0)
		return error;
	own_process_renew();
	timers_init();
	budget_calibrate();
	threads_set_ring(ring);
	/* Before a thread can arm a timer: what fires while samples are disabled is disarmed. */
	sample_enable(true);
	state_set_ring(ring);
	return 0;
}

int sampler_init(struct ring *ring)
{
	int saved_errno = errno;

	lock_acquire(&lock);
	int error = sampler_ring() ? 0 : start(ring);
	lock_release(&lock);
	errno = saved_errno;
	return error;
}

void sampler_adopt_ring_in_child(struct ring *ring)
{
	if (!sampler_ring())
		return;
	threads_set_ring(ring);
	state_set_ring(ring);
}

void sampler_stop(void)
{
	lock_acquire(&lock);
	/* Timers that are armed disarm themselves at their next signal. */
	sample_enable(false);
	state_set_ring(NULL);
	lock_release(&lock);
}
