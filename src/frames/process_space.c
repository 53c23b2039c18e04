/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store finds the module of an address, and symbol/perf_map.h the name of generated code.
 */
#include "frames/process_space.h"

#include <unistd.h>

#include "base/process_start.h"
#include "store/store.h"
#include "symbol/perf_map.h"

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	(void)space;
	return store_locate(address);
}

static int64_t own_start_time(void)
{
	static int64_t start; /* atomic, as the next */
	static pid_t process;
	pid_t now = getpid();
	/* Acquire, release: a thread that reads the process's id here also reads its start. */
	if (__atomic_load_n(&process, __ATOMIC_ACQUIRE) != now) {
		__atomic_store_n(&start, process_start_ns(), __ATOMIC_RELAXED);
		__atomic_store_n(&process, now, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&start, __ATOMIC_RELAXED);
}

static char *name_generated(const struct address_space *space, uint64_t address)
{
	(void)space;
	return perf_map_name(getpid(), own_start_time(), address & ~STORE_NOWHERE);
}

const struct address_space *process_space(void)
{
	static const struct address_space space = { .locate = locate, .name_generated = name_generated };
	return &space;
}
