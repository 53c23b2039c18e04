/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process itself does with its ring: the store, if it is linked in. The recorder has none,
 * because the command reads the rings of recorded processes; there each of these functions does
 * nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"

struct ring;

struct storing {
	bool stores;
	/* From now on the ring is stored or, if the command has it, the stored data can be read. 0
	 * or an errno value. */
	int (*start)(struct ring *ring, bool is_elsewhere);
	void (*stop)(void);
	int (*open)(char **error); /* a QP_ code, with a malloc'ed sentence */
	void (*open_ahead)(void);  /* the process is about to give up rights */
	void (*first_record)(void);
	bool (*drain)(int timeout_ms);
	char *(*error)(void); /* malloc'ed; NULL: none */
	void (*confine)(const char *why);
	void (*confine_no_more)(void);
	/* May be called in a signal handler. */
	void (*process_ends)(void);
	void (*first_thread_ends)(void);
	void (*adopt_ring_in_child)(struct ring *ring);
	uint64_t (*file_epoch)(void); /* of the open file; 0: none is open */
	uint64_t (*bytecode_lost)(
		void); /* how often some was lost or removed, and is to be published again */
};

/* At the load of the library. */
void storing_follow(const struct storing *storing);

/* Never NULL. */
const struct storing *storing_here(void);

/* Called before a thread writes a record, on an ordinary thread. One relaxed load, except while the process's
 * first record is awaited: then it calls first_record(), and a forked child that could not hand its ring over
 * is counted as lost. */
extern bool storing_is_first_awaited __attribute__((visibility("hidden"))); /* atomic */
COLD_PATH void storing_begin_first(void);

static inline void storing_begin(void)
{
	/* Relaxed: the waiter checks the awaited value again. */
	if (__builtin_expect(__atomic_load_n(&storing_is_first_awaited, __ATOMIC_RELAXED), 0))
		storing_begin_first();
}

void storing_await_first_record(bool is_awaited);
