/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread polls the socket, the connections that have sent nothing yet, and the pidfds of
 * the processes whose rings it holds. Nothing that a process does, or leaves undone, makes it
 * wait.
 */
#include "cmd/record/rings.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/vector.h"
#include "cmd/file/file_limit.h"
#include "entry/handover.h"
#include "store/shared_ring.h"

/* Processes that wait for the thread while it stores. */
#define QUEUE 4096

/* A process that was killed together with the command may take so long to be gone. */
#define END_NS 200000000ull

/* Between two looks at the rings of processes that request it. A ring has room for much more. */
#define LOOK_NS 250000000ull

/* After a refused accept(): for want of descriptors. */
#define NAP_NS 10000000

/* A process: first its connection, then what came over it. */
struct guest {
	int connection; /* -1: closed */
	pid_t process;  /* 0: not known here */
	int descriptors[HANDOVER_DESCRIPTORS];
	int asking; /* the connection of a process that stores nothing itself; -1: none */
};

static struct {
	char key[HANDOVER_KEY_SIZE + 1];
	int socket, end; /* `end`: an eventfd */
	pthread_t thread;
	bool has_thread;
	const char *path;
	int64_t max_bytes;
	VECTOR(struct guest) guests;
	VECTOR(struct pollfd) polled; /* the socket, the end, a descriptor of each guest */
	uint64_t look_at;             /* at the rings of processes that request it */
	struct recovery recovery;
} rings = { .socket = -1, .end = -1 };

void rings_open(void)
{
	unsigned char random[HANDOVER_KEY_SIZE / 2];
	struct sockaddr_un address;
	socklen_t size;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(rings.key + 2 * i, 3, "%02x", random[i]);
	size = handover_address(rings.key, &address);
	rings.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rings.socket < 0 || bind(rings.socket, (struct sockaddr *)&address, size) != 0 ||
	    listen(rings.socket, QUEUE) != 0 || setenv(HANDOVER_VARIABLE, rings.key, 1) != 0) {
		close(rings.socket);
		rings.socket = -1;
	}
}

/* --- a process comes ----------------------------------------------------------------- */

static void accept_guests(void)
{
	int connection;

	while ((connection = accept4(rings.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		if (!vector_push(&rings.guests, (struct guest){ .connection = connection, .asking = -1 }))
			close(connection);
	if (errno == EMFILE || errno == ENFILE)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

/* The process requests its ring, the newest of those before number `count` (it may have called
 * exec). False: it is not here. */
static bool take_asking(const struct guest *from, size_t count)
{
	for (size_t i = count; from->process > 0 && i-- > 0;) {
		struct guest *guest = &rings.guests.items[i];

		if (guest->process != from->process || guest->connection >= 0)
			continue;
		if (guest->asking >= 0)
			close(guest->asking);
		guest->asking = from->connection;
		rings.look_at = 0;
		return true;
	}
	return false;
}

static pid_t process_of(int connection)
{
	struct ucred sender;
	socklen_t size = sizeof(sender);

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &sender, &size) == 0 ? sender.pid : 0;
}

/* Memory for the ring of a process that cannot make any itself. False: refused, or its sender is gone. */
static bool make_memory(struct guest *guest, size_t size)
{
	int memory = shared_ring_is_size(size) ? shared_ring_memory(size) : -1;

	guest->descriptors[HANDOVER_RING] = memory;
	if (memory >= 0 && handover_send(guest->connection, "", 1, &memory, 1))
		return true;
	if (memory >= 0)
		close(memory);
	return false;
}

static bool take_message(struct guest *guest, const struct handover_message *message, int count)
{
	if (count == HANDOVER_DESCRIPTORS)
		return message->memory_bytes == 0;
	return count == 1 && make_memory(guest, message->memory_bytes);
}

/* False: the connection brought no ring. `before`: guests that are in the list. */
static bool receive(struct guest *guest, size_t before)
{
	struct handover_message message;
	int count = handover_receive(guest->connection, &message, sizeof(message), guest->descriptors);
	bool is_ours = count >= 0 && memcmp(message.key, rings.key, HANDOVER_KEY_SIZE) == 0;
	bool received = false;

	guest->process = process_of(guest->connection);
	if (is_ours && count == 0 && take_asking(guest, before))
		return false;
	if (is_ours)
		received = take_message(guest, &message, count);
	while (!received && count > 0)
		close(guest->descriptors[--count]);
	close(guest->connection);
	guest->connection = -1;
	return received;
}

/* --- a process is gone --------------------------------------------------------------- */

static void store(struct guest *guest)
{
	recovery_store(guest->descriptors[HANDOVER_RING], rings.path, rings.max_bytes, &rings.recovery);
	for (int i = 0; i < HANDOVER_DESCRIPTORS; i++)
		close(guest->descriptors[i]);
	if (guest->asking >= 0)
		close(guest->asking);
}

/* --- a process's request --------------------------------------------------------------- */

/* False: it has closed the connection. */
static bool is_connected(int connection)
{
	struct pollfd polled = { .fd = connection };

	return poll(&polled, 1, 0) == 0;
}

/* Stores what is there now. `last`: from then on the process is alone. */
static void serve_asking(bool last)
{
	for (size_t i = 0; i < rings.guests.count; i++) {
		struct guest *guest = &rings.guests.items[i];

		if (guest->connection >= 0 ||
		    (guest->asking < 0 && !shared_ring_is_left(guest->descriptors[HANDOVER_RING])))
			continue;
		/* First: what came before is stored in any case. */
		bool is_alone = guest->asking >= 0 && (last || !is_connected(guest->asking));
		recovery_store_running(guest->descriptors[HANDOVER_RING], rings.path, rings.max_bytes,
		                       &rings.recovery);
		if (is_alone) {
			close(guest->asking);
			guest->asking = -1;
		}
	}
}

/* --- the thread ------------------------------------------------------------------------ */

/* False: no memory. */
static bool list_polled(bool ending)
{
	rings.polled.count = 0;
	if (!vector_reserve(&rings.polled, rings.guests.count + 2))
		return false;
	vector_push(&rings.polled, (struct pollfd){ .fd = rings.socket, .events = POLLIN });
	vector_push(&rings.polled, (struct pollfd){ .fd = ending ? -1 : rings.end, .events = POLLIN });
	for (size_t i = 0; i < rings.guests.count; i++) {
		const struct guest *guest = &rings.guests.items[i];
		int fd = guest->connection >= 0 ? guest->connection : guest->descriptors[HANDOVER_PROCESS];

		vector_push(&rings.polled, (struct pollfd){ .fd = fd, .events = POLLIN });
	}
	return true;
}

/* Those that have something to say, or are gone; the others stay in the list. */
static void serve_guests(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < rings.guests.count; i++) {
		struct guest *guest = &rings.guests.items[i];
		bool stays = rings.polled.items[i + 2].revents == 0;

		if (!stays && guest->connection >= 0)
			stays = receive(guest, kept);
		else if (!stays)
			store(guest);
		if (stays)
			rings.guests.items[kept++] = *guest;
	}
	rings.guests.count = kept;
}

static void *watch(void *unused)
{
	uint64_t until = UINT64_MAX;

	(void)unused;
	for (bool ending = false; list_polled(ending);) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		uint64_t next = ending && rings.guests.count == 0                  ? now
		                : rings.guests.count == 0 || until < rings.look_at ? until
		                                                                   : rings.look_at;
		struct timespec left = timespec_of_ns(next > now ? next - now : 0);
		int ready = ppoll(rings.polled.items, rings.polled.count, next == UINT64_MAX ? NULL : &left,
		                  NULL);

		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= rings.look_at) {
			serve_asking(false);
			rings.look_at = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
		}
		if (ending && ready <= 0 && (now >= until || rings.guests.count == 0))
			break;
		if (ready <= 0)
			continue;
		serve_guests();
		if (rings.polled.items[0].revents != 0)
			accept_guests();
		if (rings.polled.items[1].revents != 0) {
			ending = true;
			until = clock_ns(CLOCK_MONOTONIC) + END_NS;
		}
	}
	serve_asking(true);
	return NULL;
}

void rings_watch(const char *path, int64_t max_bytes)
{
	rings.path = path;
	rings.max_bytes = max_bytes;
	rings.end = eventfd(0, EFD_CLOEXEC);
	file_limit_raise();
	rings.has_thread =
		rings.socket >= 0 && rings.end >= 0 && pthread_create(&rings.thread, NULL, watch, NULL) == 0;
}

const struct recovery *rings_finish(void)
{
	if (rings.has_thread && write(rings.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0)
		pthread_join(rings.thread, NULL);
	rings.has_thread = false;
	/* A daemon sees that it is alone. */
	if (rings.socket >= 0)
		close(rings.socket);
	rings.socket = -1;
	return &rings.recovery;
}
