/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread polls the pidfds of the processes whose rings it holds. From time to time it looks at the rings,
 * and at processes without a pidfd. No process can make it wait.
 */
#include "cmd/record/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/vector.h"
#include "cmd/ui/limits.h"
#include "cmd/record/messages.h"
#include "cmd/record/guest_process.h"
#include "cmd/record/listener.h"
#include "cmd/record/recording.h"
#include "handover/shared_ring.h"

/* The time that a process killed together with the command may take to end. */
#define END_NS 200000000ull

/* Between two looks at the rings, depending on what the last look found. */
static const uint64_t pauses[] = {
	[LOAD_NONE] = 100000000,
	[LOAD_SOME] = 50000000,
	[LOAD_HIGH] = 5000000,
};

/* A few records may wait in the ring this long, because a transaction costs milliseconds, whatever is in
 * it. Not at the end: a process that attach has left sends no more. */
#define STORE_NS 500000000

#define NOT_RECEIVED "the command could not receive the records of a process (see ulimit -n)"

/* While processes run that have no SQLite yet. */
#define IDLE_NS 1000000000ull

struct held {
	struct guest guest;
	struct recorded *recorded;
};

static struct {
	bool is_open; /* the listener */
	int end;      /* an eventfd */
	pthread_t thread;
	bool has_thread;
	VECTOR(struct held) guests;
	VECTOR(struct pollfd) polled; /* the listener, the end, messages, a descriptor of each guest */
	uint64_t check_at;            /* at the rings */
	int file; /* the trace file, with O_PATH: only to be found by cmd/live/processes.c */
	struct collection collection;
} rings = { .end = -1, .file = -1 };

enum { POLLED_LISTENER, POLLED_END, POLLED_MESSAGES, POLLED_GUESTS };

void rings_open(void)
{
	rings.is_open = listener_open();
}

void rings_cancel(void)
{
	if (rings.is_open)
		listener_remove();
}

/* --- a process comes ----------------------------------------------------------------- */

static void take(struct guest *guest)
{
	struct held held = { .guest = *guest };

	if (vector_reserve(&rings.guests, rings.guests.count + 1) &&
	    (held.recorded = recorded_open(guest->descriptors[HANDOVER_RING]))) {
		vector_push(&rings.guests, held);
	} else {
		losses_note(&rings.collection.losses, "out of memory for the records of a process", 0, 1);
		guest_close(guest);
	}
}

/* --- a process is gone --------------------------------------------------------------- */

static void end(struct held *held)
{
	recorded_end(held->recorded, &rings.collection);
	guest_close(&held->guest);
}

/* --- rings ----------------------------------------------------------------------------- */

/* Stores the present records. Returns the time until the next look. */
static uint64_t store_rings(void)
{
	enum recorded_load most = LOAD_NONE;

	for (size_t i = 0; i < rings.guests.count; i++) {
		enum recorded_load load = recorded_store(rings.guests.items[i].recorded, &rings.collection);

		most = load > most ? load : most;
	}
	return pauses[most];
}

/* --- the thread ------------------------------------------------------------------------ */

/* False: no memory. */
static bool list_polled(bool ending)
{
	rings.polled.count = 0;
	if (!vector_reserve(&rings.polled, POLLED_GUESTS + rings.guests.count))
		return false;
	vector_push(&rings.polled, (struct pollfd){ .fd = listener_arrivals(), .events = POLLIN });
	vector_push(&rings.polled, (struct pollfd){ .fd = ending ? -1 : rings.end, .events = POLLIN });
	vector_push(&rings.polled, (struct pollfd){ .fd = messages_pipe(), .events = POLLIN });
	for (size_t i = 0; i < rings.guests.count; i++) {
		const struct guest *guest = &rings.guests.items[i].guest;
		int fd = guest->is_asked ? -1 : guest->descriptors[HANDOVER_PROCESS];

		vector_push(&rings.polled, (struct pollfd){ .fd = fd, .events = POLLIN });
	}
	return true;
}

/* Finds the guests that have ended; the others stay in the list. A poll that found nothing has left all
 * results 0. */
static void end_guests(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < rings.guests.count; i++) {
		struct held *held = &rings.guests.items[i];
		const struct guest *guest = &held->guest;

		if (guest->is_asked ? guest_process_has_ended(guest->descriptors[HANDOVER_PROCESS])
		                    : rings.polled.items[POLLED_GUESTS + i].revents != 0)
			end(held);
		else
			rings.guests.items[kept++] = *held;
	}
	rings.guests.count = kept;
}

static void serve(void)
{
	end_guests();
	if (rings.polled.items[POLLED_LISTENER].revents)
		listener_take(take);
	if (rings.polled.items[POLLED_MESSAGES].revents)
		messages_take();
}

/* Until the eventfd is written, and then until no process is left, or for a moment. */
static void *watch(void *unused)
{
	uint64_t until = UINT64_MAX, now = clock_ns(CLOCK_MONOTONIC);

	(void)unused;
	for (bool ending = false; list_polled(ending);) {
		uint64_t next = rings.guests.count == 0  ? ending ? now : UINT64_MAX
		                : until < rings.check_at ? until
		                                         : rings.check_at;
		struct timespec left = timespec_of_ns(next > now ? next - now : 0);
		int ready = ppoll(rings.polled.items, rings.polled.count, next == UINT64_MAX ? NULL : &left,
		                  NULL);
		bool looks;

		now = clock_ns(CLOCK_MONOTONIC);
		looks = now >= rings.check_at;
		if (looks) {
			uint64_t pause = store_rings();

			now = clock_ns(CLOCK_MONOTONIC);
			rings.check_at = now + pause;
		}
		if (ready > 0 || looks)
			serve();
		if (ending && ready <= 0 && (now >= until || rings.guests.count == 0))
			break;
		if (ready > 0 && rings.polled.items[POLLED_END].revents != 0) {
			ending = true;
			rings.collection.interval_ns = 0;
			until = now + END_NS;
			rings.check_at = now;
		}
	}
	store_rings();
	rings.collection.interval_ns = STORE_NS;
	return NULL;
}

void rings_watch(const char *path, int64_t max_bytes)
{
	rings.collection.file.path = (char *)path;
	rings.collection.file.max_bytes = max_bytes;
	rings.collection.interval_ns = STORE_NS;
	rings.collection.keeps_file = true;
	rings.file = open(path, O_PATH | O_CLOEXEC);
	rings.end = eventfd(0, EFD_CLOEXEC);
	file_limit_raise();
	heap_share();
	rings.has_thread = rings.is_open && rings.end >= 0 && shared_ring_guard() &&
	                   pthread_create(&rings.thread, NULL, watch, NULL) == 0;
	if (rings.has_thread)
		listener_begin();
	else
		losses_note(&rings.collection.losses, NOT_RECEIVED, 0, 1);
}

/* Closes all connections except the kept one, because an SQLite connection belongs to its own process. */
struct collection *rings_finish(void)
{
	listener_end();
	if (rings.has_thread && write(rings.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0)
		pthread_join(rings.thread, NULL);
	rings.has_thread = false;
	losses_note(&rings.collection.losses, NOT_RECEIVED, 0, listener_lost());
	for (size_t i = 0; i < rings.guests.count; i++)
		recorded_rest(rings.guests.items[i].recorded);
	if (rings.is_open)
		listener_begin();
	return &rings.collection;
}

bool rings_file_is_gone(void)
{
	struct stat begun, now;

	return rings.file >= 0 && fstat(rings.file, &begun) == 0 &&
	       (stat(rings.collection.file.path, &now) || now.st_ino != begun.st_ino ||
	        now.st_dev != begun.st_dev);
}

void rings_leave(void)
{
	for (size_t i = 0; i < rings.guests.count; i++) {
		recorded_leave(rings.guests.items[i].recorded, &rings.collection);
		guest_close(&rings.guests.items[i].guest);
	}
	rings.guests.count = 0;
}

size_t rings_left(void)
{
	return rings.guests.count;
}

static void end_here(const char *error)
{
	complain("%s: recording ends here, although processes still run, because it cannot continue in the "
	         "background (fork: %s)",
	         recording_path, error);
	listener_remove();
	rings_leave();
	collection_fold(&rings.collection);
}

/* A separate process, which no process waits for and no signal of the terminal reaches. */
static bool daemonize(void)
{
	pid_t child = fork();
	int nowhere;

	if (child < 0)
		end_here(strerror(errno));
	if (child)
		return false;
	setsid();
	nowhere = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nowhere, fd);
	return true;
}

static void serve_once(uint64_t pause_ns)
{
	struct timespec pause = timespec_of_ns(pause_ns);

	if (!list_polled(true) || ppoll(rings.polled.items, rings.polled.count, &pause, NULL) < 0)
		return;
	serve();
}

void rings_go_on(bool (*is_any_left)(void), void (*at_begin)(const char *path),
                 void (*at_end)(struct collection *collection))
{
	if (!rings.is_open)
		return;
	listener_end();
	listener_take(take);
	if (rings.guests.count == 0 && !is_any_left()) {
		listener_shut();
		listener_take(take);
		if (rings.guests.count == 0) {
			listener_remove();
			return;
		}
	}
	if (!daemonize())
		return;
	rings.collection.is_alone = true;
	at_begin(rings.collection.file.path); /* before this process has a second thread */
	listener_begin();
	do {
		while (rings.guests.count != 0 || is_any_left())
			serve_once(rings.guests.count != 0 ? store_rings() : IDLE_NS);
		listener_end();
		listener_shut();
		listener_take(take);
	} while (rings.guests.count != 0);
	listener_remove();
	at_end(&rings.collection);
	_exit(0);
}
