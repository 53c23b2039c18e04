/* SPDX-License-Identifier: Apache-2.0 */
#include "query/wait.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "collect/slots.h"
#include "handler/running.h"
#include "query/cpu_clock.h"
#include "span/wait.h"
#include "timers/random.h"
#include "timers/sample_here.h"

/* --- what it waits for ------------------------------------------------------------------ */

#define MUTEXES_MAX 8 /* of a kind: one or two a library */

/* By kind, from WAIT_ON_PAGE_CACHE on. Atomic; NULL: no more. */
static const void *mutexes[WAIT_ON_OTHER_MUTEX - WAIT_ON_PAGE_CACHE][MUTEXES_MAX];
static bool (*is_of_connection)(const void *mutex); /* atomic */
static wait_lock_outside *outside;                  /* atomic */

void wait_add_mutex(const void *mutex, enum wait_object object)
{
	const void **known = mutexes[object - WAIT_ON_PAGE_CACHE], *found;

	for (int i = 0; mutex && i < MUTEXES_MAX; i++) {
		found = NULL;
		if (__atomic_compare_exchange_n(&known[i], &found, mutex, false, __ATOMIC_RELAXED,
		                                __ATOMIC_RELAXED) ||
		    found == mutex)
			return;
	}
}

void wait_set_connections(bool (*has_mutex)(const void *mutex))
{
	__atomic_store_n(&is_of_connection, has_mutex, __ATOMIC_RELAXED);
}

void wait_set_lock_outside(wait_lock_outside *lock_outside)
{
	__atomic_store_n(&outside, lock_outside, __ATOMIC_RELAXED);
}

wait_lock_outside *wait_get_lock_outside(void)
{
	return __atomic_load_n(&outside, __ATOMIC_RELAXED);
}

static enum wait_object object_of_mutex(const void *mutex)
{
	bool (*has_mutex)(const void *) = __atomic_load_n(&is_of_connection, __ATOMIC_RELAXED);

	for (int kind = 0; kind < WAIT_ON_OTHER_MUTEX - WAIT_ON_PAGE_CACHE; kind++)
		for (int i = 0; i < MUTEXES_MAX; i++)
			if (__atomic_load_n(&mutexes[kind][i], __ATOMIC_RELAXED) == mutex)
				return WAIT_ON_PAGE_CACHE + (enum wait_object)kind;
	return has_mutex && has_mutex(mutex) ? WAIT_ON_CONNECTION : WAIT_ON_OTHER_MUTEX;
}

#define NAME_BYTES 512

/* The path of an open file, "" if the kernel does not tell. */
static void read_name(int file, char name[NAME_BYTES])
{
	static const char folder[] = "/proc/self/fd/";
	char path[sizeof(folder) + 10], digits[10];
	size_t size = sizeof(folder) - 1, count = 0;
	ssize_t read;

	memcpy(path, folder, size);
	for (unsigned rest = (unsigned)file; count == 0 || rest != 0; rest /= 10)
		digits[count++] = (char)('0' + rest % 10);
	while (count != 0)
		path[size++] = digits[--count];
	path[size] = '\0';
	read = readlink(path, name, NAME_BYTES - 1);
	name[read > 0 ? read : 0] = '\0';
}

static bool ends_with(const char *name, const char *end)
{
	size_t size = strlen(name), end_size = strlen(end);

	return size >= end_size && memcmp(name + size - end_size, end, end_size) == 0;
}

/* SQLite names its files so. It unlinks temporary ones while they are open. */
static enum wait_object object_of(int file)
{
	char name[NAME_BYTES];
	struct stat status;

	if (file < 0)
		return WAIT_OBJECT_NONE;
	read_name(file, name);
	if (name[0] != '/')
		return strncmp(name, "socket:", 7) == 0 ? WAIT_ON_SOCKET
		       : strncmp(name, "pipe:", 5) == 0 ? WAIT_ON_PIPE
		                                        : WAIT_ON_FILE;
	if (fstat(file, &status) == 0 && S_ISDIR(status.st_mode))
		return WAIT_ON_FOLDER;
	if (strstr(name, "/etilqs_"))
		return WAIT_ON_TEMPORARY;
	return ends_with(name, "-wal")       ? WAIT_ON_WAL
	       : ends_with(name, "-journal") ? WAIT_ON_JOURNAL
	       : ends_with(name, "-shm")     ? WAIT_ON_WAL_INDEX
	                                     : WAIT_ON_DATABASE;
}

/* The call that waited, in the words of trace_log. */
static struct wait_field describe(const struct thread *thread, const struct wait_call *call, int file,
                                  const void *mutex)
{
	enum wait_object object = mutex ? object_of_mutex(mutex) : object_of(file);
	enum wait_cause cause = call->cause;

	if (object == WAIT_ON_SOCKET && wait_is_of_file(cause))
		cause = WAIT_NETWORK;
	if (thread->waiting->lock != 0 && !wait_is_of_file(cause) && cause != WAIT_MUTEX)
		return (struct wait_field){ .cause = WAIT_LOCK, .object = thread->waiting->lock };
	if (open_waits_is_hosts(call->caller))
		return (struct wait_field){ .cause = WAIT_USER_FUNCTION, .object = WAIT_ON_CAUSE + cause };
	if (thread->wait.is_checkpointing && wait_is_of_file(cause))
		cause = WAIT_CHECKPOINT;
	else if (object == WAIT_ON_TEMPORARY && (cause == WAIT_READ || cause == WAIT_WRITE))
		cause = WAIT_SPILL;
	return (struct wait_field){ .cause = cause, .object = object };
}

/* For a call outside queries, in which all code belongs to the program. */
static struct wait_field describe_outside(const struct wait_call *call, int file, const void *mutex)
{
	enum wait_object object = mutex ? object_of_mutex(mutex) : object_of(file);

	return (struct wait_field){ .cause = object == WAIT_ON_SOCKET && wait_is_of_file(call->cause)
		                                     ? WAIT_NETWORK
		                                     : call->cause,
		                    .object = object };
}

/* The column of query_log: that of the call, whichever code made it, except for locks. */
static enum wait_sum sum_of(const struct wait_call *call, const struct wait_field *field)
{
	if (field->cause == WAIT_LOCK)
		return WAIT_LOCK_NS;
	if (field->cause == WAIT_NETWORK || field->object == WAIT_ON_CAUSE + WAIT_NETWORK)
		return WAIT_OTHER_NS;
	switch (call->cause) {
	case WAIT_LOCK: return WAIT_LOCK_NS;
	case WAIT_READ: return WAIT_READ_NS;
	case WAIT_WRITE: return WAIT_WRITE_NS;
	case WAIT_SYNC: return WAIT_SYNC_NS;
	case WAIT_MUTEX: return WAIT_MUTEX_NS;
	case WAIT_SLEEP: return WAIT_SLEEP_NS;
	default: return WAIT_OTHER_NS;
	}
}

/* --- how much it waits ------------------------------------------------------------------ */

static void begin_sums(struct query_counts *counts)
{
	if (counts->has_waits)
		return;
	memset(counts->waits, 0, sizeof(counts->waits));
	counts->has_waits = true;
}

/* Readers of the sums come later. */
static void add(struct query_counts *counts, enum wait_sum sum, uint64_t by)
{
	if (__builtin_expect(counts->has_threads, 0)) {
		__atomic_fetch_add(&counts->waits[sum], by, __ATOMIC_RELAXED);
		return;
	}
	begin_sums(counts);
	counts->waits[sum] += by;
}

__attribute__((noinline)) void wait_describe(struct thread *thread)
{
	const struct query_tag *tag = &thread->queries[0];
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	bool is_between;

	open_waits_describe(thread);
	thread->wait.frame = 0;
	if (thread->nesting != 1 || thread->is_worker || tag->frame < sp || tag->frame >= thread->stack.end ||
	    query_running(thread, sp, &is_between) != tag)
		return;
	/* A run that is not around this code may be another thread's by now. */
	if (tag->counts->has_threads || tag->mutex_owner)
		return;
	begin_sums(tag->counts);
	thread->wait.sums = tag->counts->waits;
	thread->wait.frame = tag->frame;
	thread->wait.frame_return = tag->frame_return;
}

/* A worker's waits are in addition to the time of its query's own thread. */
static void add_to_worker(struct query_counts *counts, enum wait_sum sum, uint64_t by)
{
	if (sum >= WAIT_TIMES)
		return;
	query_counts_begin(counts);
	__atomic_fetch_add(&counts->worker_wait_ns, by, __ATOMIC_RELAXED);
}

/* For each query around the code whose stack ends at `sp`; the innermost one's tag, NULL: none. */
static void add_around(const struct thread *thread, const struct query_tag *innermost, uintptr_t sp,
                       enum wait_sum sum, uint64_t by, enum wait_sum other_sum, uint64_t other_by)
{
	uint32_t nesting = thread->nesting;

	if (!innermost)
		return;
	if (thread->is_worker) {
		add_to_worker(innermost->counts, sum, by);
		return;
	}
	if (__builtin_expect(nesting == 1, 1)) { /* as nearly always */
		add(innermost->counts, sum, by);
		if (other_by != 0)
			add(innermost->counts, other_sum, other_by);
		return;
	}
	for (uint32_t i = nesting < QUERY_NESTING ? nesting : QUERY_NESTING; i-- > 0;) {
		const struct query_tag *tag = &thread->queries[i];

		if (tag != innermost &&
		    (__atomic_load_n(&tag->ended, __ATOMIC_RELAXED) ||
		     (tag->frame != 0 &&
		      frame_location(tag->frame, tag->frame_return, &thread->stack, sp) != FRAME_AROUND)))
			continue;
		add(tag->counts, sum, by);
		if (other_by != 0)
			add(tag->counts, other_sum, other_by);
	}
}

void wait_count_around(const struct thread *thread, enum wait_sum sum, uint64_t bytes)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	bool is_between;

	add_around(thread, query_running(thread, sp, &is_between), sp, sum, 1, sum + 1, bytes);
}

struct thread *wait_thread_outside(struct thread *thread)
{
	struct outside_work work;

	if (!outside_find(thread, &work))
		return NULL;
	/* What these describe is an earlier query, and a later one describes itself. */
	thread->wait.frame = 0;
	thread->waiting->query = 0;
	return thread;
}

/* The part of the call in which the thread did not compute, if it gave its processor up. If the
 * processor was taken from the thread, the thread did not wait for the call. The waits of nested
 * calls are already counted, such as another preload's fsync() that sleeps. */
static uint64_t waited_in(struct thread *thread, const struct wait_call *call, uint64_t start_ns,
                          uint64_t took_ns, bool is_sure)
{
	uint64_t inside = thread->wait.waited_ns - call->waited_ns, switches = thread->wait.switches, cpu;
	uint64_t waited = took_ns;

	if (!is_sure || took_ns >= WAIT_SHORT_NS) {
		/* The thread's turn has not ended between that reading and the call, as it seems. */
		cpu = cpu_clock_as_of(thread, start_ns + took_ns) -
		      cpu_clock_at(call->cpu_read_ns, call->cpu_from_ns, start_ns);
		if (thread->wait.switches == switches && inside == 0)
			return 0;
		/* An estimate, so it may be too much. */
		if ((int64_t)cpu > 0)
			waited = cpu < took_ns ? took_ns - cpu : 0;
	}
	waited = waited > inside ? waited - inside : 0;
	thread->wait.waited_ns += waited;
	return waited;
}

/* The periods that end with this wait. */
static uint32_t periods_in(struct thread *thread, uint64_t period_ns, uint64_t waited_ns)
{
	struct wait_now *wait = thread->waiting;
	uint64_t beyond, periods;

	if (wait->period_ns != period_ns) {
		wait->period_ns = period_ns;
		wait->due_ns = 1 + random_next(thread) % period_ns;
	}
	if (waited_ns < wait->due_ns) {
		wait->due_ns -= waited_ns;
		return 0;
	}
	beyond = waited_ns - wait->due_ns;
	wait->due_ns = period_ns - beyond % period_ns;
	periods = 1 + beyond / period_ns;
	return periods < UINT32_MAX ? (uint32_t)periods : UINT32_MAX;
}

/* Whether the thread has given its processor up since its CPU clock was read last. */
static bool has_switched(struct thread *thread)
{
	uint64_t *switches = &thread->wait.switches, before = *switches, now;

	cpu_clock_count_switches(thread);
	now = *switches;
	*switches = before;
	return now != before;
}

/* This function, sampler_record_observed(), and the replacement of the host's function. */
#define OWN_FRAMES 3

/* Without flags nearly all calls come here, and most are short. */
__attribute__((noinline)) void wait_end_switched(const struct wait_call *call, int file, const void *mutex,
                                                 bool is_likely)
{
	struct thread *thread = call->thread;
	const unsigned halves = is_likely || qp_span_here ? WAIT_LEAST_HALVES : WAIT_SHORT_HALVES;
	int saved_errno = errno;
	uint64_t took_ns, now, start_ns, waited;
	struct wait_field field;
	const struct query_tag *tag;
	uint32_t periods;
	bool is_between, was_one, is_outside = thread->nesting == 0;
	uint64_t period_ns;

	turn_renew(thread);
	if (!mutex && fast_clock_is_soon(call->start, halves)) {
		/* It tells query.c of the switch. */
		if (switch_flag_is_set())
			fast_clock_ns(&thread->clock);
		return;
	}
	took_ns = fast_clock_since(call->start);
	now = fast_clock_ns(&thread->clock);
	/* The counter may advance while the machine sleeps. */
	if (took_ns > now - call->known_ns)
		took_ns = now - call->known_ns;
	start_ns = now - took_ns;
	was_one = mutex || took_ns >= WAIT_SHORT_NS ||
	          (took_ns >= WAIT_LEAST_NS && (is_likely || qp_span_here) && has_switched(thread));
	if (was_one && (waited = waited_in(thread, call, start_ns, took_ns, mutex)) != 0) {
		tag = query_running(thread, (uintptr_t)__builtin_frame_address(0), &is_between);
		field = is_outside ? describe_outside(call, file, mutex)
		                   : describe(thread, call, file, mutex);
		field.ns = took_ns;
		if (!is_outside)
			span_wait_put(start_ns, &field);
		add_around(thread, tag, (uintptr_t)__builtin_frame_address(0), sum_of(call, &field), waited,
		           0, 0);
		/* Outside: that of the thread's newest query. */
		period_ns = tag          ? tag->off_cpu_period_ns
		            : is_outside ? thread->queries[0].off_cpu_period_ns
		                         : 0;
		periods = period_ns ? periods_in(thread, period_ns, waited) : 0;
		if (periods != 0) {
			struct observation seen = { .type = tag ? SAMPLE_OFF_CPU : SAMPLE_PROGRAM_OFF_CPU,
				                    .weight = periods,
				                    .period_ns = period_ns,
				                    .value = (int64_t)(periods * period_ns),
				                    .wait = &field,
				                    .skipped = OWN_FRAMES };

			sampler_record_observed(thread, &seen);
		}
	}
	errno = saved_errno;
}

/* --- looking ---------------------------------------------------------------------------- */

static struct thread *find_thread(uint32_t thread_id)
{
	struct thread *thread;

	for (uint32_t i = 0; i < slots_count(); i++) {
		thread = slots_get(i);
		/* Acquire: the address of its wait was written before. */
		if (__atomic_load_n(&thread->owner, __ATOMIC_ACQUIRE) == thread_id)
			return thread;
	}
	return NULL;
}

/* SQLite's busy handler sleeps repeatedly; together, the sleeps are the wait for the lock. */
static void inspect_lock(const struct thread *thread, uint64_t entered_ns, uint64_t now,
                         struct wait_view *view)
{
	uint32_t lock = __atomic_load_n(&thread->waiting->lock, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&thread->waiting->lock_since_ns, __ATOMIC_RELAXED);

	if (lock == 0 || since > now || since < entered_ns)
		return;
	view->cause = wait_cause_name(WAIT_LOCK);
	view->object = wait_lock_name(lock);
	view->ns = now - since;
	view->holder_session = __atomic_load_n(&thread->waiting->holder_session, __ATOMIC_RELAXED);
	view->holder_process = __atomic_load_n(&thread->waiting->holder_process, __ATOMIC_RELAXED);
	view->holder_thread = __atomic_load_n(&thread->waiting->holder_thread, __ATOMIC_RELAXED);
}

struct wait_view wait_inspect(uint32_t thread_id, uint64_t entered_ns)
{
	const struct thread *thread = thread_id != 0 ? find_thread(thread_id) : NULL;
	struct wait_view view = { .cause = "", .object = "" };
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ns;
	struct fast_moment since;

	if (!thread)
		return view;
	/* Acquire: with wait_begin(). */
	since.at = __atomic_load_n(&thread->waiting->since, __ATOMIC_ACQUIRE);
	since.scale = __atomic_load_n(&thread->waiting->scale, __ATOMIC_RELAXED);
	ns = since.at != 0 ? fast_clock_since(since) : 0;
	/* One that was left by a longjmp may have begun before. The two clocks need not agree on the last
	 * thousandth. */
	if (ns != 0 && ns - ns / 1000 <= now - entered_ns) {
		view.cause = wait_cause_name(__atomic_load_n(&thread->waiting->cause, __ATOMIC_RELAXED));
		view.ns = ns < now - entered_ns ? ns : now - entered_ns;
	}
	inspect_lock(thread, entered_ns, now, &view);
	return view;
}
