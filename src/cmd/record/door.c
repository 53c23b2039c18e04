/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/door.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/vector.h"
#include "cmd/record/guest_process.h"
#include "cmd/record/sockets.h"
#include "handover/shared_ring.h"

/* After a refused accept(): for want of descriptors. */
#define NAP_NS 10000000

/* At the end: a process that comes again and again must not prolong it. */
#define LAST_ROUNDS 16

static struct {
	struct sockets sockets;
	bool is_shut;
	VECTOR(int) connections;      /* that have sent nothing yet */
	VECTOR(struct pollfd) polled; /* the sockets, the end, the connections */
	int end, arrivals;            /* eventfds */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of `arrived` */
	VECTOR(struct guest) arrived;
} door = { .end = -1, .arrivals = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

enum { POLLED_END = HANDOVER_SOCKETS, POLLED_CONNECTIONS };

void guest_close(struct guest *guest)
{
	for (int i = 0; i < HANDOVER_DESCRIPTORS; i++)
		if (guest->descriptors[i] >= 0)
			close(guest->descriptors[i]);
}

static void accept_connections(void)
{
	for (int i = 0; i < HANDOVER_SOCKETS; i++) {
		int from = door.sockets.listening[i], connection;

		while ((connection = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
			if (!vector_push(&door.connections, connection))
				close(connection);
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}

/* What a process cannot make itself. False: refused, or it is gone. */
static bool make_descriptors(struct guest *guest, int connection, size_t size)
{
	int *process = &guest->descriptors[HANDOVER_PROCESS], *memory = &guest->descriptors[HANDOVER_RING];

	*process = guest_process_open(connection, &guest->is_asked);
	*memory = *process >= 0 && shared_ring_is_size(size) ? shared_ring_memory(size) : -1;
	if (*memory >= 0 && handover_send(connection, "", 1, memory, 1))
		return true;
	guest_close(guest);
	return false;
}

static bool handle_message(struct guest *guest, int connection, const struct handover_message *message,
                           int count)
{
	if (count == HANDOVER_DESCRIPTORS)
		return message->memory_bytes == 0;
	return count == 0 && make_descriptors(guest, connection, message->memory_bytes);
}

static bool announce(const struct guest *guest)
{
	bool is_kept;

	pthread_mutex_lock(&door.lock);
	is_kept = vector_push(&door.arrived, *guest);
	pthread_mutex_unlock(&door.lock);
	return is_kept && write(door.arrivals, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0;
}

static void receive(int connection)
{
	struct handover_message message;
	struct guest guest = { .is_asked = false };
	int count = handover_receive(connection, &message, sizeof(message), guest.descriptors);
	bool is_ours = count >= 0 && memcmp(message.key, door.sockets.key.digits, HANDOVER_KEY_SIZE) == 0;
	bool received = is_ours && handle_message(&guest, connection, &message, count);

	while (!received && count > 0)
		close(guest.descriptors[--count]);
	if (received && !announce(&guest))
		guest_close(&guest);
	close(connection);
}

/* False: no memory. */
static bool list_polled(void)
{
	door.polled.count = 0;
	if (!vector_reserve(&door.polled, POLLED_CONNECTIONS + door.connections.count))
		return false;
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		vector_push(&door.polled,
		            (struct pollfd){ .fd = door.is_shut ? -1 : door.sockets.listening[i],
		                             .events = POLLIN });
	vector_push(&door.polled, (struct pollfd){ .fd = door.end, .events = POLLIN });
	for (size_t i = 0; i < door.connections.count; i++)
		vector_push(&door.polled,
		            (struct pollfd){ .fd = door.connections.items[i], .events = POLLIN });
	return true;
}

/* False: nobody came, or the end did. `patience` NULL: waits for either. */
static bool serve(const struct timespec *patience)
{
	size_t kept = 0;

	if (!list_polled() || ppoll(door.polled.items, door.polled.count, patience, NULL) <= 0)
		return false;
	for (size_t i = 0; i < door.connections.count; i++) {
		int connection = door.connections.items[i];

		if (door.polled.items[POLLED_CONNECTIONS + i].revents)
			receive(connection);
		else
			door.connections.items[kept++] = connection;
	}
	door.connections.count = kept;
	if (door.polled.items[HANDOVER_ABSTRACT].revents || door.polled.items[HANDOVER_PATH].revents)
		accept_connections();
	return !door.polled.items[POLLED_END].revents;
}

static void *watch(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "queryprof door");
	while (serve(NULL))
		;
	return NULL;
}

bool door_open(void)
{
	door.end = eventfd(0, EFD_CLOEXEC);
	door.arrivals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return door.end >= 0 && door.arrivals >= 0 && sockets_open(&door.sockets);
}

void door_begin(void)
{
	sockets_own(&door.sockets);
	door.has_thread = pthread_create(&door.thread, NULL, watch, NULL) == 0;
}

static void serve_last(void)
{
	for (int i = 0; i < LAST_ROUNDS && serve(&(struct timespec){ 0 }); i++)
		;
}

void door_end(void)
{
	uint64_t count;

	if (door.has_thread && write(door.end, &(uint64_t){ 1 }, sizeof(uint64_t)) > 0 &&
	    pthread_join(door.thread, NULL) == 0 && read(door.end, &count, sizeof(count)) > 0)
		serve_last();
	door.has_thread = false;
}

void door_shut(void)
{
	sockets_shut(&door.sockets);
	accept_connections();
	door.is_shut = true;
	serve_last();
}

void door_remove(void)
{
	sockets_remove(&door.sockets);
}

int door_arrivals(void)
{
	return door.arrivals;
}

void door_take(void (*take)(struct guest *guest))
{
	uint64_t count;

	if (read(door.arrivals, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&door.lock);
	for (size_t i = 0; i < door.arrived.count; i++)
		take(&door.arrived.items[i]);
	door.arrived.count = 0;
	pthread_mutex_unlock(&door.lock);
}
