/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/guest_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/ui/process_files.h"
#include "handover/handover.h"

static int open_folder(pid_t process)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)process);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whether it has the command's clock: in another time namespace (Linux 5.6) CLOCK_BOOTTIME differs. */
static bool has_same_clock(pid_t process)
{
	struct stat here, there;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)process);
	if (stat("/proc/self/ns/time", &here))
		return true;
	return stat(path, &there) == 0 && here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

/* By that clock. */
static uint64_t began_ns(pid_t process)
{
	return process_start_ticks(process) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

int guest_process_open(int connection, uint64_t sent_ns, bool *is_asked)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);
	int process;

	getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	*is_asked = process < 0;
	if (*is_asked)
		process = open_folder(peer.pid);
	/* The number belongs to another process now. */
	if (process >= 0 && began_ns(peer.pid) > sent_ns && has_same_clock(peer.pid)) {
		close(process);
		process = -1;
		*is_asked = true;
	}
	return process;
}

/* The first thread may have ended before the others; it is a zombie then. */
bool guest_process_has_ended(int folder)
{
	char text[512], state;
	const char *name_end;
	int threads;
	int fd = openat(folder, "stat", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	bool is_gone = folder < 0 || (size < 0 && (errno == ESRCH || errno == ENOENT));

	if (fd >= 0)
		close(fd);
	text[size < 0 ? 0 : size] = '\0';
	name_end = strrchr(text, ')');
	if (name_end &&
	    sscanf(name_end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d",
	           &state, &threads) == 2)
		is_gone = (state == 'Z' || state == 'X') && threads <= 1;
	return is_gone;
}
