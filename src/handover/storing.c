/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/storing.h"

#include "handover/shared_ring.h"

/* --- the recorder's ---------------------------------------------------------------------- */

static int start_nothing(struct ring *ring, bool is_elsewhere)
{
	(void)ring;
	(void)is_elsewhere;
	return 0;
}

static int open_nothing(char **error)
{
	*error = NULL;
	return 0;
}

static bool drain_nothing(int timeout_ms)
{
	(void)timeout_ms;
	return true;
}

static char *no_error(void)
{
	return NULL;
}

static void do_nothing(void)
{
}

static void confine_nothing(const char *why)
{
	(void)why;
}

static void adopt_nothing(struct ring *ring)
{
	(void)ring;
}

static uint64_t none(void)
{
	return 0;
}

static const struct storing nothing = {
	.start = start_nothing,
	.stop = do_nothing,
	.open = open_nothing,
	.open_ahead = do_nothing,
	.first_record = do_nothing,
	.drain = drain_nothing,
	.error = no_error,
	.confine = confine_nothing,
	.confine_no_more = do_nothing,
	.process_ends = do_nothing,
	.first_thread_ends = do_nothing,
	.adopt_ring_in_child = adopt_nothing,
	.file_epoch = none,
	.bytecode_lost = none,
};

/* --- which it is --------------------------------------------------------------------------- */

static const struct storing *followed = &nothing; /* atomic */
bool storing_is_first_awaited;

void storing_follow(const struct storing *given)
{
	__atomic_store_n(&followed, given, __ATOMIC_RELEASE);
}

const struct storing *storing_here(void)
{
	/* Acquire: its content. */
	return __atomic_load_n(&followed, __ATOMIC_ACQUIRE);
}

void storing_begin_first(void)
{
	storing_here()->first_record();
	if (shared_ring_lose_child())
		storing_await_first_record(false);
}

void storing_await_first_record(bool is_awaited)
{
	__atomic_store_n(&storing_is_first_awaited, is_awaited, __ATOMIC_RELAXED);
}
