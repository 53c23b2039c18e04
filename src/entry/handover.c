/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/handover.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/fork.h"
#include "sampler/ring_reader.h"
#include "store/shared_ring.h"

/* Older headers do not know it. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A copy: the host may change its environment before it forks. */
static char key[HANDOVER_KEY_SIZE];

static bool is_done;

/* The key, with descriptors or without. */
static bool send_key(int to, const int *descriptors, size_t count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(HANDOVER_DESCRIPTORS * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
		                  .cmsg_type = SCM_RIGHTS,
		                  .cmsg_len = CMSG_LEN(count * sizeof(int)) } };
	struct iovec text = { .iov_base = key, .iov_len = sizeof key };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };

	if (count) {
		memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	}
	return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof key;
}

/* Does not wait: the command has a queue. -1: refused, or the command has ended. */
static int connect_to_command(void)
{
	struct sockaddr_un address;
	socklen_t size = handover_address(key, &address);
	int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (to >= 0 && connect(to, (struct sockaddr *)&address, size)) {
		close(to);
		to = -1;
	}
	return to;
}

/* The connection; -1: refused. */
static int send_message(const int *descriptors, size_t count)
{
	int to = connect_to_command();

	if (to >= 0 && !send_key(to, descriptors, count)) {
		close(to);
		to = -1;
	}
	return to;
}

static void hand_over(int ring)
{
	const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	const int descriptors[] = { [HANDOVER_RING] = ring, [HANDOVER_PROCESS] = process };
	int to = process >= 0 ? send_message(descriptors, HANDOVER_DESCRIPTORS) : -1;

	is_done = to >= 0;
	if (to >= 0)
		close(to);
	if (process >= 0)
		close(process);
}

bool handover_is_done(void)
{
	return is_done;
}

bool handover_leave(int *connection)
{
	int to;

	if (!is_done)
		return false;
	if (connection) {
		*connection = send_message(NULL, 0);
		return true;
	}
	to = connect_to_command(); /* a daemon goes on when the command has ended */
	if (to >= 0)
		close(to);
	return to >= 0;
}

static void (*take_ring)(struct ring *ring);

void handover_on_fork(void (*take)(struct ring *ring))
{
	take_ring = take;
}

static void renew_in_child(void)
{
	int fd;

	take_ring(shared_ring_renew(&fd));
	is_done = false;
	if (fd < 0)
		return;
	hand_over(fd);
	close(fd);
}

struct ring *handover_ring(size_t ring_bytes)
{
	const char *wanted = secure_getenv(HANDOVER_VARIABLE);
	struct ring *ring = NULL;
	int fd;

	if (wanted && strlen(wanted) == sizeof key) {
		memcpy(key, wanted, sizeof key);
		ring = shared_ring_make(ring_bytes, &fd);
	}
	if (!ring)
		return ring_create(ring_bytes);
	hand_over(fd);
	close(fd);
	sampler_at_fork(renew_in_child);
	return ring;
}
