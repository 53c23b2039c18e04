/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
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

/* When the command has ended anybody can take the abstract name, and would get the text of all queries. The
 * command's user is this process's, or root, from whom it got its own; in a user namespace the kernel gives
 * the number that the command's user has there. */
static bool is_command(int to)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return syscall(SYS_getsockopt, to, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static bool has_no_descriptors(void)
{
	return errno == EMFILE || errno == ENFILE;
}

#define NO_DESCRIPTORS "it can open no more descriptors (ulimit -n)"

static const char *refused_memory(void)
{
	return has_no_descriptors() ? NO_DESCRIPTORS
	       : errno == EFBIG     ? "the limit of file sizes (ulimit -f) is smaller than the shared memory"
	       : errno == ENOMEM || errno == ENOSPC
	               ? "no memory is left"
	               : "the kernel or a seccomp filter refuses it shared memory (memfd_create)";
}

/* Does not block, because the command has a queue. -1: refused, or the command has ended. */
static int connect_to_command(void)
{
	int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (to < 0 && has_no_descriptors())
		refusal = NO_DESCRIPTORS;
	for (int i = 0; to >= 0 && i < HANDOVER_SOCKETS; i++)
		if (connect(to, (struct sockaddr *)&sockets[i].address, sockets[i].size) == 0 &&
		    is_command(to))
			return to;
	if (to >= 0)
		close(to);
	return -1;
}

static bool send_message(int to, const int *descriptors, size_t count)
{
	union handover_control control = { .header = { .cmsg_level = SOL_SOCKET,
		                                       .cmsg_type = SCM_RIGHTS,
		                                       .cmsg_len = CMSG_LEN(count * sizeof(int)) } };
	struct handover_message text = { .sent_ns = clock_ns(CLOCK_BOOTTIME) };
	struct iovec part = { .iov_base = &text, .iov_len = sizeof(text) };
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = &control,
		                  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memcpy(text.key, key, sizeof(key));
	memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(text);
}

/* Whether the command receives it. */
static bool send_memory(int memory)
{
	const int to = connect_to_command();
	const int process = to >= 0 ? (int)syscall(SYS_pidfd_open, getpid(), 0) : -1;
	const int descriptors[] = { [HANDOVER_RING] = memory, [HANDOVER_PROCESS] = process };
	const bool is_sent = to >= 0 && send_message(to, descriptors, process >= 0 ? 2 : 1);

	if (process >= 0)
		close(process);
	if (to >= 0)
		close(to);
	return is_sent;
}

/* Memory that the command has, too; -1: refused. */
static int share_memory(size_t size)
{
	int memory = shared_ring_memory(size);

	refusal = memory < 0 ? refused_memory() : "none of its sockets is reachable";
	is_done = memory >= 0 && send_memory(memory);
	if (is_done) {
		refusal = NULL;
	} else if (memory >= 0) {
		close(memory);
		memory = -1;
	}
	return memory;
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
