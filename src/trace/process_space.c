/*
 * The store knows where an address lies, and symbol/perf_map.h what generated code is
 * called.
 */
#include "trace/process_space.h"

#include <stdatomic.h>
#include <unistd.h>

#include "store/store.h"
#include "symbol/perf_map.h"

static _Atomic(address_locator) other_locate;
static _Atomic(address_reader) other_read;

void address_use_locator(address_locator locate)
{
	atomic_store_explicit(&other_locate, locate, memory_order_relaxed);
}

void address_use_reader(address_reader read)
{
	atomic_store_explicit(&other_read, read, memory_order_relaxed);
}

static bool locate(const struct address_space *space, uint64_t address, struct store_location *location)
{
	address_locator other = atomic_load_explicit(&other_locate, memory_order_relaxed);
	(void)space;
	return other ? other(address, location) : store_locate(address, location);
}

static size_t recall(const struct address_space *space, uint64_t address, struct symbol_frame *frames,
                     size_t room)
{
	address_reader read = atomic_load_explicit(&other_read, memory_order_relaxed);
	(void)space;
	return read ? read(address, frames, room) : 0;
}

static int64_t own_start_time(void)
{
	static _Atomic(int64_t) start;
	static _Atomic(pid_t) process;
	pid_t now = getpid();
	/* Acquire, release: a thread that reads the process's id here also reads its start. */
	if (atomic_load_explicit(&process, memory_order_acquire) != now) {
		atomic_store_explicit(&start, store_process_start(), memory_order_relaxed);
		atomic_store_explicit(&process, now, memory_order_release);
	}
	return atomic_load_explicit(&start, memory_order_relaxed);
}

static char *name_generated(const struct address_space *space, uint64_t address)
{
	(void)space;
	if (atomic_load_explicit(&other_locate, memory_order_relaxed))
		return NULL;
	return perf_map_name(getpid(), own_start_time(), address & ~STORE_NOWHERE);
}

const struct address_space *process_space(void)
{
	static const struct address_space space = { locate, recall, name_generated };
	return &space;
}
