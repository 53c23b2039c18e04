/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/listener.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/vector.h"
#include "cmd/record/guest_process.h"

/* Processes that wait for the command while it stores. */
#define QUEUE 4096

/* The pause after accept() failed for lack of descriptors. */
#define NAP_NS 10000000

/* At the end, processes that connect again and again must not prolong it. */
#define LAST_ROUNDS 16

static struct {
	struct handover_key key;
	int listening[HANDOVER_SOCKETS]; /* -1: there is none */
	struct sockaddr_un path;         /* of the socket in the file system */
	bool is_shut;
	VECTOR(int) connections;      /* that have sent nothing yet */
	VECTOR(struct pollfd) polled; /* the sockets, the end, the connections */
	int end, arrivals;            /* eventfds */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of `arrived` */
	VECTOR(struct guest) arrived;
	unsigned lost; /* atomic */
	bool is_short; /* of descriptors, when connections were accepted last */
} listener = { .end = -1, .arrivals = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

enum { POLLED_END = HANDOVER_SOCKETS, POLLED_CONNECTIONS };

/* --- the sockets --------------------------------------------------------------------------------- */

static bool make_key(struct handover_key *key)
{
	const char *folder = getenv("TMPDIR");
	unsigned char random[HANDOVER_KEY_SIZE / 2];
	char digits[HANDOVER_KEY_SIZE + 1];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(digits + 2 * i, 3, "%02x", random[i]);
	memcpy(key->digits, digits, HANDOVER_KEY_SIZE);
	if (!folder || *folder != '/' || strlen(folder) > HANDOVER_FOLDER_MAX)
		folder = "/tmp";
	memcpy(key->folder, folder, strlen(folder) + 1);
	return true;
}

/* -1: refused. */
static int listen_at(const struct sockaddr_un *address, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || (!bind(fd, (const struct sockaddr *)address, size) && !listen(fd, QUEUE)))
		return fd;
	close(fd);
	return -1;
}

/* The folder has nothing but the socket. */
static void find_folder(char folder[sizeof(listener.path.sun_path)])
{
	memcpy(folder, listener.path.sun_path, sizeof(listener.path.sun_path));
	*strrchr(folder, '/') = '\0';
}

void listener_remove(void)
{
	char folder[sizeof(listener.path.sun_path)];

	find_folder(folder);
	unlink(listener.path.sun_path);
	rmdir(folder);
}

/* Other users can connect to the name, which they cannot list: a process may have given up its own user. */
static int listen_at_path(socklen_t size)
{
	char folder[sizeof(listener.path.sun_path)];
	int fd;

	find_folder(folder);
	if (mkdir(folder, 0700))
		return -1;
	fd = listen_at(&listener.path, size);
	if (fd < 0 || chmod(listener.path.sun_path, 0666) || chmod(folder, 0711))
		listener_remove();
	return fd;
}

/* Opens them and names them in the environment. False: there is no socket. */
static bool open_sockets(void)
{
	struct sockaddr_un address;
	socklen_t size;

	listener.listening[HANDOVER_ABSTRACT] = listener.listening[HANDOVER_PATH] = -1;
	if (!make_key(&listener.key) || setenv(HANDOVER_VARIABLE, (const char *)&listener.key, 1))
		return false;
	size = handover_address(&listener.key, HANDOVER_ABSTRACT, &address);
	listener.listening[HANDOVER_ABSTRACT] = listen_at(&address, size);
	size = handover_address(&listener.key, HANDOVER_PATH, &listener.path);
	listener.listening[HANDOVER_PATH] = listen_at_path(size);
	return listener.listening[HANDOVER_ABSTRACT] >= 0 || listener.listening[HANDOVER_PATH] >= 0;
}

/* --- the guests ---------------------------------------------------------------------------------- */

void guest_close(struct guest *guest)
{
	for (int i = 0; i < HANDOVER_DESCRIPTORS; i++)
		if (guest->descriptors[i] >= 0)
			close(guest->descriptors[i]);
}

static void accept_connections(void)
{
	listener.is_short = false;
	for (int i = 0; i < HANDOVER_SOCKETS; i++) {
		int from = listener.listening[i], connection;

		while ((connection = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			if (!vector_push(&listener.connections, connection))
				close(connection);
		if (errno == EMFILE || errno == ENFILE) {
			listener.is_short = true;
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		}
	}
}

static void lose_guest(void)
{
	__atomic_fetch_add(&listener.lost, 1, __ATOMIC_RELAXED);
}

/* The number of descriptors, which now belong to the guest; -1: something else arrived, or nothing, or not
 * all descriptors. */
static int receive_message(int from, struct handover_message *received, struct guest *guest)
{
	union handover_control control;
	struct iovec part = { .iov_base = received, .iov_len = sizeof(*received) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t size = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *header = size >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
	int count = 0;

	/* With room for one header, and as many as fit in. */
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(guest->descriptors, CMSG_DATA(header), (size_t)count * sizeof(int));
	}
	if (size != sizeof(*received) || message.msg_flags & MSG_TRUNC ||
	    memcmp(received->key, listener.key.digits, HANDOVER_KEY_SIZE) != 0)
		return -1;
	if (!(message.msg_flags & MSG_CTRUNC))
		return count;
	lose_guest(); /* this process can have no more of them */
	return -1;
}

static bool announce(const struct guest *guest)
{
	bool is_kept;

	pthread_mutex_lock(&listener.lock);
	is_kept = vector_push(&listener.arrived, *guest);
	pthread_mutex_unlock(&listener.lock);
	if (!is_kept)
		lose_guest();
	return is_kept && write(listener.arrivals, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0;
}

static void receive(int connection)
{
	struct handover_message message;
	struct guest guest = { .descriptors = { -1, -1 } };
	const int count = receive_message(connection, &message, &guest);

	if (count == HANDOVER_RING + 1)
		guest.descriptors[HANDOVER_PROCESS] =
			guest_process_open(connection, message.sent_ns, &guest.is_asked);
	if (count < HANDOVER_RING + 1 || !announce(&guest))
		guest_close(&guest);
	close(connection);
}

/* False: no memory. */
static bool list_polled(void)
{
	listener.polled.count = 0;
	if (!vector_reserve(&listener.polled, POLLED_CONNECTIONS + listener.connections.count))
		return false;
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		vector_push(&listener.polled,
		            (struct pollfd){ .fd = listener.is_shut ? -1 : listener.listening[i],
		                             .events = POLLIN });
	vector_push(&listener.polled, (struct pollfd){ .fd = listener.end, .events = POLLIN });
	for (size_t i = 0; i < listener.connections.count; i++)
		vector_push(&listener.polled,
		            (struct pollfd){ .fd = listener.connections.items[i], .events = POLLIN });
	return true;
}

/* False: no process connected, or the end came. patience NULL: waits for either. */
static bool serve(const struct timespec *patience)
{
	size_t kept = 0;

	if (!list_polled() || ppoll(listener.polled.items, listener.polled.count, patience, NULL) <= 0)
		return false;
	for (size_t i = 0; i < listener.connections.count; i++) {
		int connection = listener.connections.items[i];

		if (listener.polled.items[POLLED_CONNECTIONS + i].revents)
			receive(connection);
		else
			listener.connections.items[kept++] = connection;
	}
	listener.connections.count = kept;
	if (listener.polled.items[HANDOVER_ABSTRACT].revents || listener.polled.items[HANDOVER_PATH].revents)
		accept_connections();
	return !listener.polled.items[POLLED_END].revents;
}

static void *watch(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "listener");
	while (serve(NULL))
		;
	return NULL;
}

bool listener_open(void)
{
	listener.end = eventfd(0, EFD_CLOEXEC);
	listener.arrivals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return listener.end >= 0 && listener.arrivals >= 0 && open_sockets();
}

void listener_begin(void)
{
	/* Tells clients that this process listens, because it may be a fork of the one that opened the
	 * sockets. */
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		listen(listener.listening[i], QUEUE);
	listener.has_thread = pthread_create(&listener.thread, NULL, watch, NULL) == 0;
}

static void serve_last(void)
{
	for (int i = 0; i < LAST_ROUNDS && serve(&(struct timespec){ 0 }); i++)
		;
}

void listener_end(void)
{
	uint64_t count;

	if (listener.has_thread && write(listener.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0 &&
	    pthread_join(listener.thread, NULL) == 0 && read(listener.end, &count, sizeof(count)) > 0)
		serve_last();
	listener.has_thread = false;
}

void listener_shut(void)
{
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		shutdown(listener.listening[i], SHUT_RD);
	/* Earlier connections can still be accepted. */
	accept_connections();
	listener.is_shut = true;
	serve_last();
}

int listener_arrivals(void)
{
	return listener.arrivals;
}

void listener_take(void (*take)(struct guest *guest))
{
	uint64_t count;

	if (read(listener.arrivals, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&listener.lock);
	for (size_t i = 0; i < listener.arrived.count; i++)
		take(&listener.arrived.items[i]);
	listener.arrived.count = 0;
	pthread_mutex_unlock(&listener.lock);
}

uint64_t listener_lost(void)
{
	uint64_t lost = __atomic_exchange_n(&listener.lost, 0, __ATOMIC_RELAXED);

	for (int i = 0; listener.is_short && i < HANDOVER_SOCKETS; i++) {
		struct pollfd waiting = { .fd = listener.listening[i], .events = POLLIN };

		lost += poll(&waiting, 1, 0) > 0;
	}
	return lost;
}
