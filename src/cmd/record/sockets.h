/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets through which the processes of a recording hand over their rings (handover/handover.h).
 */
#pragma once

#include <stdbool.h>

#include "handover/handover.h"

struct sockets {
	struct handover_key key;
	int listening[HANDOVER_SOCKETS]; /* -1: there is none */
	struct sockaddr_un path;         /* of the one in the file system */
};

/* Opens them and names them in the environment. False: there is no socket. */
bool sockets_open(struct sockets *sockets);

/* Tells clients that this process listens, because it may be a fork of the one that opened the sockets. */
void sockets_own(const struct sockets *sockets);

/* From here on no process can connect. Earlier connections can still be accepted. */
void sockets_shut(const struct sockets *sockets);

/* Removes the socket from the file system. */
void sockets_remove(const struct sockets *sockets);
