/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/handover.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bounded_wait.h"
#include "base/environment.h"
#include "base/task_file.h"
#include "collect/ring_reader.h"
#include "process/fork.h"
#include "handover/shared_ring.h"
#include "handover/storing.h"

/* Copies from when the library was loaded, because the host may change its environment. */
static char key[HANDOVER_KEY_SIZE];
static struct {
	struct sockaddr_un address;
	socklen_t size;
} sockets[HANDOVER_SOCKETS];

static bool is_done;
static bool is_key_known;
static const char *refusal; /* constant; NULL: no command expects the ring, or it has it */

/* Room for the descriptors of a message. */
union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(HANDOVER_DESCRIPTORS * sizeof(int))];
};

bool handover_send(int to, const void *bytes, size_t size, const int *descriptors, size_t count)
{
	union control control = { .header = { .cmsg_level = SOL_SOCKET,
		                              .cmsg_type = SCM_RIGHTS,
		                              .cmsg_len = CMSG_LEN(count * sizeof(int)) } };
	struct iovec text = { .iov_base = (void *)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };

	if (count) {
		memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

int handover_receive(int from, void *bytes, size_t size, int descriptors[HANDOVER_DESCRIPTORS])
{
	union control control;
	struct iovec text = { .iov_base = bytes, .iov_len = size };
	struct msghdr message = {
		.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t received = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *header = received >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
	int count = 0;

	/* With room for one header, and as many as fit in. */
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(descriptors, CMSG_DATA(header), (size_t)count * sizeof(int));
	}
	if (received == (ssize_t)size && !(message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
		return count;
	while (count)
		close(descriptors[--count]);
	return -1;
}

socklen_t handover_address(const struct handover_key *of, enum handover_socket which,
                           struct sockaddr_un *address)
{
	const int half = HANDOVER_KEY_SIZE / 2;
	int size;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (which == HANDOVER_ABSTRACT)
		size = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "queryprof-%.*s", half,
		                of->digits);
	else
		size = snprintf(address->sun_path, sizeof(address->sun_path), "%s/queryprof-%.*s/%.*s",
		                of->folder, half, of->digits, half, of->digits + half);
	/* With the 0 at the begin of an abstract name, or at the end of a path. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size + 1);
}

static bool find_peer(int to, struct ucred *peer)
{
	socklen_t size = sizeof(*peer);

	return syscall(SYS_getsockopt, to, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0;
}

/* When the command has ended anybody can take the abstract name, and would get the text of all queries. The
 * command's user is this process's, or root, from whom it got its own; in a user namespace the kernel gives
 * the number that the command's user has there. */
static bool is_command(int to)
{
	struct ucred peer;

	return find_peer(to, &peer) && (peer.uid == 0 || peer.uid == geteuid());
}

/* Does not block, because the command has a queue. -1: refused, or the command has ended. */
static int connect_to_command(void)
{
	int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (to < 0 && (errno == EMFILE || errno == ENFILE))
		refusal = "it can open no more descriptors (ulimit -n)";
	for (int i = 0; to >= 0 && i < HANDOVER_SOCKETS; i++)
		if (connect(to, (struct sockaddr *)&sockets[i].address, sockets[i].size) == 0 &&
		    is_command(to))
			return to;
	if (to >= 0)
		close(to);
	return -1;
}

/* The connection; -1: refused. */
static int send_message(struct handover_message message, const int *descriptors, size_t count)
{
	int to = connect_to_command();

	memcpy(message.key, key, sizeof(key));
	if (to >= 0 && !handover_send(to, &message, sizeof(message), descriptors, count)) {
		close(to);
		to = -1;
	}
	return to;
}

/* By a signal. A debugger may stop a single thread, which need not be the one that responds. False, too, if
 * this process cannot see the command in /proc. */
static bool is_command_stopped(int to)
{
	char text[64];
	struct ucred peer;

	if (!find_peer(to, &peer))
		return false;
	task_file_read_other(peer.pid, "stat", text, sizeof(text));
	return task_file_state(text) == 'T';
}

BOUNDED_WAIT_DEFINE(for_memory, "a process that cannot make its memory: the command has made it",
                    BOUND_MS(HANDOVER_WAIT_MS), "the command, with the memory, or its end");

/* As ppoll(). Timed by the kernel, and the host's signals wait meanwhile: no handler must run. */
static long await_response(int from)
{
	const uint64_t all = ~0ull;
	uint64_t waited = 0, next = BOUND_MS(1);
	long ready;

	do {
		struct pollfd polled = { .fd = from, .events = POLLIN };
		struct timespec left = timespec_of_ns(next); /* the kernel changes it */

		ready = syscall(SYS_ppoll, &polled, 1, &left, &all, sizeof(all));
		waited += next;
		next *= 2;
	} while (ready == 0 && waited < for_memory.limit_ns && !is_command_stopped(from));
	return ready;
}

/* The memory that the command has made; -1: none, see `refusal`. */
static int await_memory(int from)
{
	int descriptors[HANDOVER_DESCRIPTORS], count = 0;
	const long ready = await_response(from);
	char byte;

	refusal = ready == 0 ? "the command did not answer" : "it received no memory from the command";
	if (ready == 1)
		count = handover_receive(from, &byte, 1, descriptors);
	while (count > 1)
		close(descriptors[--count]);
	return count == 1 ? descriptors[0] : -1;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Memory that the command also has; -1: there is none. The process does not wait for memory that
 * it makes itself. */
static int share_memory(size_t size)
{
	const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int memory = process >= 0 ? shared_ring_memory(size) : -1;
	const int descriptors[] = { [HANDOVER_PROCESS] = process, [HANDOVER_RING] = memory };
	bool is_requested = memory < 0;
	int to;

	refusal = "none of its sockets is reachable";
	to = send_message((struct handover_message){ .memory_bytes = is_requested ? size : 0 }, descriptors,
	                  is_requested ? 0 : HANDOVER_DESCRIPTORS);
	if (to >= 0 && is_requested)
		memory = await_memory(to);
	is_done = to >= 0 && memory >= 0;
	if (is_done)
		refusal = NULL;
	else
		close_if_open(memory);
	close_if_open(to);
	close_if_open(process);
	return is_done ? memory : -1;
}

bool handover_is_done(void)
{
	return is_done;
}

const char *handover_is_refused(void)
{
	if (!is_key_known && !storing_here()->stores)
		return HANDOVER_VARIABLE " is not in its environment";
	return refusal;
}

static void (*adopt_ring)(struct ring *ring);

void handover_on_fork(void (*adopt)(struct ring *ring))
{
	adopt_ring = adopt;
}

static void renew_in_child(void)
{
	size_t size = shared_ring_size_here();
	int memory = size ? share_memory(size) : -1;
	bool is_shared;
	struct ring *ring = shared_ring_renew(memory, &is_shared);

	is_done = is_done && is_shared;
	storing_await_first_record(!is_done);
	adopt_ring(ring);
	if (memory >= 0)
		close(memory);
}

static bool find_sockets(const char *value)
{
	const size_t size = value ? strlen(value) : 0;
	struct handover_key given;

	if (size < HANDOVER_KEY_SIZE || size >= sizeof(given))
		return false;
	memcpy(&given, value, size + 1);
	memcpy(key, given.digits, sizeof(key));
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		sockets[i].size = handover_address(&given, i, &sockets[i].address);
	return true;
}

void handover_read_key(void)
{
	is_key_known = find_sockets(environment_value(HANDOVER_VARIABLE));
}

__attribute__((constructor)) static void read_environment(void)
{
	handover_read_key();
}

struct ring *handover_ring(size_t ring_bytes)
{
	struct ring *ring = NULL;
	int memory = -1;

	if (is_key_known)
		memory = share_memory(shared_ring_size(ring_bytes));
	if (memory >= 0) {
		ring = shared_ring_make(ring_bytes, memory);
		close(memory);
	}
	if (!ring) {
		if (is_done)
			refusal = "its memory cannot be mapped";
		is_done = false;
		return ring_create(ring_bytes);
	}
	sampler_at_fork(renew_in_child);
	return ring;
}

void handover_end(void)
{
	sampler_at_fork(NULL);
}

struct ring *handover_ring_again(struct ring *ring, size_t ring_bytes)
{
	const size_t size = shared_ring_size_here();
	int memory;

	if (!size)
		return handover_ring(ring_bytes);
	refusal = NULL;
	is_done = false;
	memory = is_key_known ? share_memory(size) : -1;
	if (memory < 0)
		return ring;
	ring = shared_ring_renew(memory, &is_done);
	close(memory);
	sampler_at_fork(renew_in_child);
	return ring;
}
