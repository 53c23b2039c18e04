/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread polls the socket, the connections that have sent nothing yet, and the pidfds of
 * the processes whose rings it holds. Nothing that a process does, or leaves undone, makes it
 * wait.
 */
#include "rings.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/vector.h"
#include "entry/handover.h"

/* Processes that wait for the thread while it stores. */
#define QUEUE 4096

/* A process that was killed together with the command may take so long to be gone. */
#define END_NS 200000000ull

/* After a refused accept(): for want of descriptors. */
#define NAP_NS 10000000

/* A process: first its connection, then what came over it. */
struct guest {
	int connection; /* -1: closed */
	int descriptors[HANDOVER_DESCRIPTORS];
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
	struct recovery recovery;
} rings = { .socket = -1, .end = -1 };

int rings_open(void)
{
	unsigned char random[HANDOVER_KEY_SIZE / 2];
	struct sockaddr_un address;
	socklen_t size;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -1;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(rings.key + 2 * i, 3, "%02x", random[i]);
	size = handover_address(rings.key, &address);
	rings.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rings.socket < 0 || bind(rings.socket, (struct sockaddr *)&address, size) != 0 ||
	    listen(rings.socket, QUEUE) != 0 || setenv(HANDOVER_VARIABLE, rings.key, 1) != 0) {
		close(rings.socket);
		rings.socket = -1;
	}
	return rings.socket;
}

/* --- a process comes ----------------------------------------------------------------- */

static void accept_guests(void)
{
	int connection;

	while ((connection = accept4(rings.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		if (!vector_push(&rings.guests, (struct guest){ .connection = connection }))
			close(connection);
	if (errno == EMFILE || errno == ENFILE)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static bool is_message(const struct msghdr *message, ssize_t size)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);

	return size == HANDOVER_KEY_SIZE &&
	       memcmp(message->msg_iov->iov_base, rings.key, HANDOVER_KEY_SIZE) == 0 && header &&
	       header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	       header->cmsg_len == CMSG_LEN(HANDOVER_DESCRIPTORS * sizeof(int));
}

/* A message with fewer or more descriptors is nobody's. */
static void close_received(struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		for (size_t i = 0;
		     header->cmsg_type == SCM_RIGHTS && CMSG_LEN((i + 1) * sizeof(int)) <= header->cmsg_len;
		     i++)
			close(((int *)CMSG_DATA(header))[i]);
}

/* False: the connection brought nothing. */
static bool receive(struct guest *guest)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(HANDOVER_DESCRIPTORS * sizeof(int))];
	} control;
	char key[HANDOVER_KEY_SIZE];
	struct iovec text = { .iov_base = key, .iov_len = sizeof(key) };
	struct msghdr message = {
		.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t size = recvmsg(guest->connection, &message, MSG_CMSG_CLOEXEC);
	bool received = size >= 0 && is_message(&message, size);

	if (received)
		memcpy(guest->descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(guest->descriptors));
	else if (size >= 0)
		close_received(&message);
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
			stays = receive(guest);
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
		bool waits = rings.guests.count != 0 && until > now;
		struct timespec left = timespec_of_ns(waits ? until - now : 0);
		int ready = ppoll(rings.polled.items, rings.polled.count, ending ? &left : NULL, NULL);

		if (ready <= 0 && ending)
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
	return NULL;
}

/* Descriptors for all processes that the system lets us watch. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void rings_watch(const char *path, int64_t max_bytes)
{
	rings.path = path;
	rings.max_bytes = max_bytes;
	rings.end = eventfd(0, EFD_CLOEXEC);
	raise_limit();
	rings.has_thread =
		rings.socket >= 0 && rings.end >= 0 && pthread_create(&rings.thread, NULL, watch, NULL) == 0;
}

const struct recovery *rings_finish(void)
{
	if (rings.has_thread && write(rings.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0)
		pthread_join(rings.thread, NULL);
	rings.has_thread = false;
	return &rings.recovery;
}
