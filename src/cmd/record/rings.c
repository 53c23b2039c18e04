/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread polls the sockets, the connections that have sent nothing yet, and the pidfds of
 * the processes whose rings it holds, and looks at the rings, and at processes without a pidfd, at times.
 * Nothing that a process does, or leaves undone, makes it wait.
 */
#include "cmd/record/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/vector.h"
#include "cmd/file/file_limit.h"
#include "cmd/record/guest_process.h"
#include "cmd/record/sockets.h"
#include "handover/handover.h"
#include "handover/shared_ring.h"

/* A process that was killed together with the command may take so long to be gone. */
#define END_NS 200000000ull

/* Between two looks at the rings, by what the last one found. */
static const uint64_t pauses[] = {
	[LOAD_NONE] = 100000000,
	[LOAD_SOME] = 50000000,
	[LOAD_HIGH] = 5000000,
};

/* Few records wait so long in the ring: a transaction costs milliseconds, whatever is in it. */
#define STORE_NS 500000000

/* While processes run that have no SQLite yet. */
#define IDLE_NS 1000000000ull

/* After a refused accept(): for want of descriptors. */
#define NAP_NS 10000000

/* A process: first its connection, then what came over it. */
struct guest {
	int connection; /* -1: closed */
	int descriptors[HANDOVER_DESCRIPTORS];
	bool is_asked; /* whether it has ended: cmd/record/guest_process.h */
	struct recorded *recorded;
};

static struct {
	struct sockets sockets;
	bool is_open; /* one of them */
	int end;      /* an eventfd */
	pthread_t thread;
	bool has_thread;
	VECTOR(struct guest) guests;
	VECTOR(struct pollfd) polled; /* the sockets, the end, a descriptor of each guest */
	uint64_t check_at;            /* at the rings */
	int file; /* the trace file, with O_PATH: only to be found by cmd/live/processes.c */
	struct collection collection;
} rings = { .end = -1, .file = -1 };

enum { POLLED_END = HANDOVER_SOCKETS, POLLED_GUESTS };

void rings_open(void)
{
	rings.is_open = sockets_open(&rings.sockets);
}

void rings_cancel(void)
{
	if (rings.is_open)
		sockets_remove(&rings.sockets);
}

/* --- a process comes ----------------------------------------------------------------- */

static void accept_guests(void)
{
	for (int i = 0; i < HANDOVER_SOCKETS; i++) {
		int from = rings.sockets.listening[i], connection;

		while ((connection = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			if (!vector_push(&rings.guests, (struct guest){ .connection = connection }))
				close(connection);
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}

static void close_guest(struct guest *guest)
{
	for (int i = 0; i < HANDOVER_DESCRIPTORS; i++)
		if (guest->descriptors[i] >= 0)
			close(guest->descriptors[i]);
}

/* What a process cannot make itself. False: refused, or it is gone. */
static bool make_descriptors(struct guest *guest, size_t size)
{
	int *process = &guest->descriptors[HANDOVER_PROCESS], *memory = &guest->descriptors[HANDOVER_RING];

	*process = guest_process_open(guest->connection, &guest->is_asked);
	*memory = *process >= 0 && shared_ring_is_size(size) ? shared_ring_memory(size) : -1;
	if (*memory >= 0 && handover_send(guest->connection, "", 1, memory, 1))
		return true;
	close_guest(guest);
	return false;
}

static bool handle_message(struct guest *guest, const struct handover_message *message, int count)
{
	if (count == HANDOVER_DESCRIPTORS)
		return message->memory_bytes == 0;
	return count == 0 && make_descriptors(guest, message->memory_bytes);
}

/* False: the connection brought no ring. */
static bool receive(struct guest *guest)
{
	struct handover_message message;
	int count = handover_receive(guest->connection, &message, sizeof(message), guest->descriptors);
	bool is_ours = count >= 0 && memcmp(message.key, rings.sockets.key.digits, HANDOVER_KEY_SIZE) == 0;
	bool received = is_ours && handle_message(guest, &message, count);

	while (!received && count > 0)
		close(guest->descriptors[--count]);
	close(guest->connection);
	guest->connection = -1;
	if (received && !(guest->recorded = recorded_open(guest->descriptors[HANDOVER_RING]))) {
		close_guest(guest);
		return false;
	}
	return received;
}

/* --- a process is gone --------------------------------------------------------------- */

static void end(struct guest *guest)
{
	recorded_end(guest->recorded, &rings.collection);
	close_guest(guest);
}

/* --- rings ----------------------------------------------------------------------------- */

/* Stores what is there now. Returns the time until the next look. */
static uint64_t store_rings(void)
{
	enum recorded_load most = LOAD_NONE;

	for (size_t i = 0; i < rings.guests.count; i++) {
		struct guest *guest = &rings.guests.items[i];
		enum recorded_load load = LOAD_NONE;

		if (guest->connection < 0)
			load = recorded_store(guest->recorded, &rings.collection);
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
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		vector_push(&rings.polled,
		            (struct pollfd){ .fd = rings.sockets.listening[i], .events = POLLIN });
	vector_push(&rings.polled, (struct pollfd){ .fd = ending ? -1 : rings.end, .events = POLLIN });
	for (size_t i = 0; i < rings.guests.count; i++) {
		const struct guest *guest = &rings.guests.items[i];
		int fd = guest->connection >= 0 ? guest->connection
		         : guest->is_asked      ? -1
		                                : guest->descriptors[HANDOVER_PROCESS];

		vector_push(&rings.polled, (struct pollfd){ .fd = fd, .events = POLLIN });
	}
	return true;
}

/* Those that have something to say, or are gone; the others stay in the list. A poll that found nothing has
 * left all results 0. */
static void serve_guests(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < rings.guests.count; i++) {
		struct guest *guest = &rings.guests.items[i];
		bool is_asked = guest->connection < 0 && guest->is_asked;
		bool stays = is_asked ? !guest_process_has_ended(guest->descriptors[HANDOVER_PROCESS])
		                      : rings.polled.items[POLLED_GUESTS + i].revents == 0;

		if (!stays && guest->connection >= 0)
			stays = receive(guest);
		else if (!stays)
			end(guest);
		if (stays)
			rings.guests.items[kept++] = *guest;
	}
	rings.guests.count = kept;
}

static void serve(void)
{
	serve_guests();
	if (rings.polled.items[HANDOVER_ABSTRACT].revents || rings.polled.items[HANDOVER_PATH].revents)
		accept_guests();
}

/* Until the eventfd says so, and then until no process is left, or for a moment. */
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
			until = now + END_NS;
			rings.check_at = now;
		}
	}
	store_rings();
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
	rings.has_thread = rings.is_open && rings.end >= 0 && shared_ring_guard() &&
	                   pthread_create(&rings.thread, NULL, watch, NULL) == 0;
}

/* No connection stays open but the one that is kept: one of SQLite's is its own process's. */
struct collection *rings_finish(void)
{
	if (rings.has_thread && write(rings.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0)
		pthread_join(rings.thread, NULL);
	rings.has_thread = false;
	for (size_t i = 0; i < rings.guests.count; i++)
		if (rings.guests.items[i].connection < 0)
			recorded_rest(rings.guests.items[i].recorded);
	return &rings.collection;
}

/* A process of its own: nobody waits for it, and no terminal's signal reaches it. */
static bool daemonize(void)
{
	pid_t child = fork();
	int nowhere;

	if (child < 0)
		sockets_remove(&rings.sockets);
	if (child)
		return false;
	setsid();
	nowhere = open("/dev/null", O_RDWR);
	for (int fd = STDIN_FILENO; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nowhere, fd);
	return true;
}

/* Nobody can come any more, and who came before has been accepted. */
static void close_door(void)
{
	sockets_shut(&rings.sockets);
	accept_guests();
}

static void serve_once(uint64_t pause_ns)
{
	struct timespec pause = timespec_of_ns(pause_ns);

	if (!list_polled(true) || ppoll(rings.polled.items, rings.polled.count, &pause, NULL) < 0)
		return;
	serve();
}

void rings_go_on(bool (*is_any_left)(void), void (*at_end)(const char *path))
{
	if (!rings.is_open)
		return;
	if (rings.guests.count == 0 && !is_any_left()) {
		close_door();
		if (rings.guests.count == 0) {
			sockets_remove(&rings.sockets);
			return;
		}
	}
	if (!daemonize())
		return;
	do {
		while (rings.guests.count != 0 || is_any_left())
			serve_once(rings.guests.count != 0 ? store_rings() : IDLE_NS);
		close_door();
	} while (rings.guests.count != 0);
	sockets_remove(&rings.sockets);
	collection_fold(&rings.collection);
	at_end(rings.collection.file.path);
	_exit(0);
}
