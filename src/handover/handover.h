/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Under `queryprof record` each process hands its ring over to the command, which stores the records,
 * and the rest when the process has ended: normally, by SIGKILL, a crash, or a bare exit_group.
 *
 * The command listens on two sockets. A process reaches the abstract one with any root, user and
 * mounts, and the one in the file system from other network namespaces. The environment has a key of
 * 32 digits, which names both, and the folder of the second one. The message is the key, so that the
 * command accepts only processes of the recording. It carries two descriptors: the shared ring
 * (handover/shared_ring.h) and a pidfd. The process keeps neither of them open, and waits for nothing.
 *
 * If the process has no pidfd (Linux 5.3, a seccomp filter), the command looks for its peer in /proc.
 *
 * If anything else is refused, the process is not recorded, and `record` reports that at its end. One
 * reason is RLIMIT_FSIZE: the memory is a file. Memory that the command makes for such a process would
 * have to be waited for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "wire/handover_message.h"

#define HANDOVER_VARIABLE "QUERYPROF_RECORD_KEY"

/* Which of the sockets. */
enum handover_socket { HANDOVER_ABSTRACT, HANDOVER_PATH, HANDOVER_SOCKETS };

/* "/tmp/queryprof-0123456789abcdef/0123456789abcdef" is a name of a socket. */
#define HANDOVER_FOLDER_MAX                                                                                  \
	(sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/queryprof-/") - HANDOVER_KEY_SIZE)

/* The variable's value: first the digits, then the folder. */
struct handover_key {
	char digits[HANDOVER_KEY_SIZE];
	char folder[HANDOVER_FOLDER_MAX + 1];
};

/* Older headers do not know it. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

struct ring;

/* The process's ring, handed over if there is a command. NULL with errno set if memory runs out. */
struct ring *handover_ring(size_t ring_bytes);

/* The environment names a command now, or another one. */
void handover_read_key(void);

/* The command reads nothing any more: children of the process have no ring. */
void handover_end(void);

/* handover_ring() once more, after handover_end(), for the next command. No thread writes to `ring`
 * meanwhile, and its records are gone; where it was shared, the new one is at the same place. */
struct ring *handover_ring_again(struct ring *ring, size_t ring_bytes);

/* Whether the command has it, and stores what this process records. */
bool handover_is_done(void);

/* Why nothing reads the ring, a constant text: the command did not receive it, or there is no
 * command and this process does not store. NULL: something reads it. */
const char *handover_is_refused(void);

/* Called in a forked child, before everything else there, with the child's ring. Set before
 * handover_ring(). */
void handover_on_fork(void (*adopt)(struct ring *ring));

/* Room for the descriptors of a message. */
union handover_control {
	struct cmsghdr header;
	char room[CMSG_SPACE(HANDOVER_DESCRIPTORS * sizeof(int))];
};

/* The socket that the key names. Returns the length of the address. The second half of the key, which other
 * users cannot see, is the name in the file system: when the command has ended, nobody else can take its
 * place there. */
socklen_t handover_address(const struct handover_key *key, enum handover_socket which,
                           struct sockaddr_un *address);
