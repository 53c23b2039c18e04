/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Processes that wait for the command while it stores. */
#define QUEUE 4096

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
static void find_folder(const struct sockets *sockets, char folder[sizeof(sockets->path.sun_path)])
{
	memcpy(folder, sockets->path.sun_path, sizeof(sockets->path.sun_path));
	*strrchr(folder, '/') = '\0';
}

/* Other users can connect to the name, which they cannot list: a process may have given up its own user. */
static int listen_at_path(const struct sockets *sockets, socklen_t size)
{
	char folder[sizeof(sockets->path.sun_path)];
	int fd;

	find_folder(sockets, folder);
	if (mkdir(folder, 0700))
		return -1;
	fd = listen_at(&sockets->path, size);
	if (fd < 0 || chmod(sockets->path.sun_path, 0666) || chmod(folder, 0711))
		sockets_remove(sockets);
	return fd;
}

bool sockets_open(struct sockets *sockets)
{
	struct sockaddr_un address;
	socklen_t size;

	sockets->listening[HANDOVER_ABSTRACT] = sockets->listening[HANDOVER_PATH] = -1;
	if (!make_key(&sockets->key) || setenv(HANDOVER_VARIABLE, (const char *)&sockets->key, 1))
		return false;
	size = handover_address(&sockets->key, HANDOVER_ABSTRACT, &address);
	sockets->listening[HANDOVER_ABSTRACT] = listen_at(&address, size);
	size = handover_address(&sockets->key, HANDOVER_PATH, &sockets->path);
	sockets->listening[HANDOVER_PATH] = listen_at_path(sockets, size);
	return sockets->listening[HANDOVER_ABSTRACT] >= 0 || sockets->listening[HANDOVER_PATH] >= 0;
}

void sockets_own(const struct sockets *sockets)
{
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		listen(sockets->listening[i], QUEUE);
}

void sockets_shut(const struct sockets *sockets)
{
	for (int i = 0; i < HANDOVER_SOCKETS; i++)
		shutdown(sockets->listening[i], SHUT_RD);
}

void sockets_remove(const struct sockets *sockets)
{
	char folder[sizeof(sockets->path.sun_path)];

	find_folder(sockets, folder);
	unlink(sockets->path.sun_path);
	rmdir(folder);
}
