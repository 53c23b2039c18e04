/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel lists a process's threads; the first one remains as a zombie after its end. Without /proc the
 * last thread is not known, and the process continues.
 */
#include "store/last_thread.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bounded_wait.h"
#include "base/task_file.h"
#include "store/control/control.h"
#include "store/pacer.h"
#include "store/read/pool.h"
#include "timers/threads.h"

#define CHECK_INTERVAL_NS 50000000ll

BOUNDED_WAIT_DEFINE(for_watch, "a seccomp filter: the watch thread has ended", BOUND_MS(200),
                    "the watch thread: it looks");
BOUNDED_WAIT_DEFINE(between_checks, "the watch thread: the host's last thread ends", BOUND_NONE,
                    "nothing, so it looks every 50 ms");

/* Whether the first thread has ended and only queryprof's threads, `ours`, remain. */
static bool is_ours(int ours)
{
	char text[256];
	struct dirent *entry;
	int threads = 0;
	DIR *folder = opendir("/proc/self/task");

	while (folder && (entry = readdir(folder)))
		threads += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	if (threads != 1 + ours)
		return false;
	task_file_read((uint32_t)getpid(), "stat", text, sizeof(text));
	return task_file_state(text) == 'Z';
}

static struct store_thread watch;
static sigset_t watch_starters_mask;
static char watch_starters_name[16];

/* The process ends with its last thread, which runs the host's exit handlers and flushes the host's streams.
 * That is this thread, because it has the host's descriptors, unlike the flusher. From then on it works for
 * the host, so its statements are sampled. */
static void watch_main(void)
{
	for (;;) {
		int ours;

		if (__atomic_load_n(&store_control.is_confined, __ATOMIC_RELAXED)) {
			control_lock();
			control_happens(EVENT_WATCH_OVER);
			control_unlock();
			return;
		}
		control_lock();
		ours = 1 + control_has_thread() + pool_has_thread() + pacer_has_thread();
		control_unlock();
		if (is_ours(ours))
			break;
		bounded_wait_pause(&between_checks, CHECK_INTERVAL_NS);
	}
	sampler_include_thread();
	pthread_setname_np(pthread_self(), watch_starters_name);
	pthread_sigmask(SIG_SETMASK, &watch_starters_mask, NULL);
	exit(0);
}

bool last_thread_watch(void)
{
	if (store_control.watch != WATCH_WANTED)
		return true;
	pthread_sigmask(SIG_SETMASK, NULL, &watch_starters_mask);
	pthread_getname_np(pthread_self(), watch_starters_name, sizeof(watch_starters_name));
	if (control_make_thread(&watch, watch_main))
		return false;
	pthread_detach(watch.thread);
	control_happens(EVENT_WATCH);
	return true;
}

void last_thread_await_watch(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_watch);

	while (__atomic_load_n(&store_control.watch, __ATOMIC_RELAXED) == WATCH_RUNS &&
	       bounded_wait_nap(&wait, CHECK_INTERVAL_NS / 10))
		;
}
