/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets to which the processes of a recording bring their rings (handover/handover.h).
 */
#pragma once

#include <stdbool.h>

#include "handover/handover.h"

struct sockets {
	struct handover_key key;
	int listening[HANDOVER_SOCKETS]; /* -1: there is none */
	struct sockaddr_un path;         /* of the one in the file system */
};

/* Opens them and names them in the environment. False: there is none. */
bool sockets_open(struct sockets *sockets);

/* Whoever connects is told that this process listens: it may be a fork of the one that opened them. */
void sockets_own(const struct sockets *sockets);

/* From here on nobody can connect. A connection that was made before can still be accepted. */
void sockets_shut(const struct sockets *sockets);

/* Removes what is in the file system. */
void sockets_remove(const struct sockets *sockets);
