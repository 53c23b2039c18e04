/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_thread: processes all items in their order, with and without a thread; a failure ends the work with
 * its errno. To test it without a thread, the program asks for a default stack that is too large.
 */
#include "cmd/file/helper_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ITEMS 4
#define BLOCKS 3
#define CHECK(what) (void)((what) || (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), exit(1), 0))

struct seen {
	uint64_t next, fails_at;
	pthread_t thread;
};

static bool see(void *context, const void *first, size_t count)
{
	struct seen *seen = context;
	const uint64_t *items = first;

	CHECK(count > 0 && count <= ITEMS);
	seen->thread = pthread_self();
	for (size_t i = 0; i < count; i++) {
		if (items[i] == seen->fails_at) {
			errno = ENOSPC;
			return false;
		}
		CHECK(items[i] == seen->next++);
	}
	return true;
}

static struct helper_thread *start(struct seen *seen)
{
	struct helper_thread *thread = helper_thread_start(sizeof(uint64_t), ITEMS, BLOCKS, see, seen);

	CHECK(thread);
	return thread;
}

static bool add(struct helper_thread *thread, uint64_t item)
{
	uint64_t *place = helper_thread_add(thread);

	if (place)
		*place = item;
	return place;
}

/* All numbers of items around the sizes of blocks, in two parts. */
static void check_order(bool has_thread)
{
	for (uint64_t count = 0; count <= 2 * ITEMS * BLOCKS + 1; count++) {
		struct seen seen = { .fails_at = UINT64_MAX };
		struct helper_thread *thread = start(&seen);

		for (uint64_t part = 1; part <= 2; part++) {
			for (uint64_t i = 0; i < count; i++)
				CHECK(add(thread, (part - 1) * count + i));
			CHECK(helper_thread_wait(thread) && !errno);
			CHECK(seen.next == part * count);
		}
		CHECK(!count || !pthread_equal(seen.thread, pthread_self()) == has_thread);
		CHECK(!count || add(thread, 2 * count));
		helper_thread_end(thread);
		CHECK(!count || seen.next == 2 * count + 1);
	}
}

static void check_failure(void)
{
	for (uint64_t fails_at = 0; fails_at < (uint64_t)ITEMS * BLOCKS; fails_at++) {
		struct seen seen = { .fails_at = fails_at };
		struct helper_thread *thread = start(&seen);
		uint64_t added = 0;

		while (added < 1000 && add(thread, added))
			added++;
		CHECK(added > fails_at && added <= (uint64_t)ITEMS * (BLOCKS + 1) + fails_at);
		CHECK(!helper_thread_wait(thread) && errno == ENOSPC);
		CHECK(seen.next == fails_at);
		CHECK(!add(thread, added));
		helper_thread_end(thread);
		CHECK(seen.next == fails_at);
	}
}

int main(void)
{
	pthread_attr_t attributes;

	check_order(true);
	check_failure();
	pthread_attr_init(&attributes);
	CHECK(!pthread_attr_setstacksize(&attributes, (size_t)1 << 46));
	CHECK(!pthread_setattr_default_np(&attributes));
	check_order(false);
	check_failure();
	helper_thread_end(NULL);
	return 0;
}
