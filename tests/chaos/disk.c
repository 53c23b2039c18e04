/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk for the flusher that is full, or hangs. The library makes bare system calls, so the kernel asks this
 * program before each write and sync (seccomp_unotify(2)), and a thread responds.
 */
#include "chaos.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HANG_MOST_S 300 /* a longer hang means that the host waits for the disk */

atomic_bool is_hanging, host_waited, disk_hangs, disk_is_full;
atomic_int forking;
static int listener = -1;

static int64_t runs_ended(void)
{
	int64_t sum = 0;

	for (int i = 0; i < WORKERS; i++)
		sum += atomic_load(&counts[i].ended);
	return sum;
}

static time_t now_s(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Finds only this process's flusher, because a child has a flusher, too. */
static bool is_flusher(uint32_t thread)
{
	char path[64], name[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", thread);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		*name = '\0';
	fclose(file);
	return !strcmp(name, "queryprof\n");
}

/* Without an error, the call continues. */
static void answer(uint64_t id, int error)
{
	struct seccomp_notif_resp response = { .id = id,
		                               .error = -error,
		                               .flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

struct hang {
	uint64_t id; /* of the call; 0: no call hangs */
	int64_t until;
	time_t since;
};

static void take_call(struct hang *hang)
{
	struct seccomp_notif call = { .id = 0 };
	bool is_of_flusher;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return;
	is_of_flusher = (atomic_load(&disk_hangs) || atomic_load(&disk_is_full)) && is_flusher(call.pid);
	if (is_of_flusher && !hang->id && atomic_load(&disk_hangs)) {
		*hang = (struct hang){ call.id, runs_ended() + HANG_RUNS, now_s() };
		count_deed(HUNG);
		atomic_store(&is_hanging, true);
	} else if (is_of_flusher && atomic_load(&disk_is_full) && call.data.nr == SYS_pwrite64) {
		count_deed(FULL);
		answer(call.id, ENOSPC);
	} else {
		answer(call.id, 0);
	}
}

static void end_hang(struct hang *hang)
{
	bool is_long = now_s() - hang->since > HANG_MOST_S;

	if (!is_long && runs_ended() < hang->until && !atomic_load(&over) && !atomic_load(&forking))
		return;
	if (is_long)
		atomic_store(&host_waited, true);
	answer(hang->id, 0);
	hang->id = 0;
	atomic_store(&is_hanging, false);
}

static void *be_disk(void *unused)
{
	struct pollfd calls = { .fd = listener, .events = POLLIN };
	struct hang hang = { .id = 0 };

	(void)unused;
	for (;;) {
		if (poll(&calls, 1, hang.id ? 1 : -1) > 0)
			take_call(&hang);
		if (hang.id)
			end_hang(&hang);
	}
	return NULL;
}

bool disk_begin(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };
	pthread_t thread;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
	                        &program);
	return listener >= 0 && !pthread_create(&thread, NULL, be_disk, NULL) && !pthread_detach(thread);
}
