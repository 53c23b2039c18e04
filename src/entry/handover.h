/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under `queryprof record` each process hands its ring over to the command, which stores what comes there,
 * and the rest when the process is gone: at its end, after SIGKILL, a crash, or a bare exit_group.
 *
 * The command listens on a socket of the abstract kind, which a process reaches with any root
 * and any user, and which leaves no file. The environment has a key of 32 digits: the first
 * half names the socket, and the whole is the message, so that only processes of the
 * recording get a hearing. With it go two descriptors: the shared ring (store/shared_ring.h),
 * and a pidfd. The process keeps none of them open.
 *
 * A process that cannot make such memory itself, as RLIMIT_FSIZE is smaller, requests it: its message has the
 * size and the pidfd alone, and the response brings the memory's descriptor. The process waits for it, no
 * longer than HANDOVER_WAIT_MS.
 *
 * Where any of this is refused, the ring is as private as without `record`, and a flusher of the process's
 * own stores.
 */
#ifndef QUERYPROF_ENTRY_HANDOVER_H
#define QUERYPROF_ENTRY_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HANDOVER_VARIABLE "QUERYPROF_RECORD_KEY"
#define HANDOVER_KEY_SIZE 32

enum handover_descriptor { HANDOVER_PROCESS, HANDOVER_RING, HANDOVER_DESCRIPTORS };

/* The command answers at once, unless it stores what another process left. */
#define HANDOVER_WAIT_MS 1000

struct handover_message {
	char key[HANDOVER_KEY_SIZE];
	uint64_t memory_bytes; /* of a ring that is requested; 0: none is */
};

struct ring;

/* The process's ring, handed over if there is a command to take it. NULL with errno set when
 * there is no memory. */
struct ring *handover_ring(size_t ring_bytes);

/* Whether the command has it, and stores what this process records. */
bool handover_is_done(void);

/* Called in a forked child, before anything else there: the ring of the child. Set before
 * handover_ring(). */
void handover_on_fork(void (*take)(struct ring *ring, bool is_handed_over));

/* Sends the bytes with so many descriptors, without waiting. */
bool handover_send(int to, const void *bytes, size_t size, const int *descriptors, size_t count);

/* Receives so many bytes, without waiting, and up to HANDOVER_DESCRIPTORS descriptors, whose number it
 * returns; -1: something else came, or nothing. */
int handover_receive(int from, void *bytes, size_t size, int descriptors[HANDOVER_DESCRIPTORS]);

/* The socket that the key names. Returns the length of the address. */
static inline socklen_t handover_address(const char key[HANDOVER_KEY_SIZE], struct sockaddr_un *address)
{
	static const char prefix[] = "queryprof-";
	const size_t prefix_size = sizeof(prefix) - 1, name_size = HANDOVER_KEY_SIZE / 2;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	__builtin_memcpy(address->sun_path + 1, prefix, prefix_size);
	__builtin_memcpy(address->sun_path + 1 + prefix_size, key, name_size);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + prefix_size + name_size);
}

#endif
