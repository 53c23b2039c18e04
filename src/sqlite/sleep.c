#include "sleep.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "host.h"

static int sleep_until_deadline(sqlite3_vfs *vfs, int microseconds)
{
	struct timespec deadline;

	(void)vfs;
	if (microseconds <= 0)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += microseconds / 1000000;
	deadline.tv_nsec += microseconds % 1000000 * 1000L;
	if (deadline.tv_nsec >= 1000000000L) {
		deadline.tv_nsec -= 1000000000L;
		deadline.tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
		;
	return microseconds;
}

/* The system's own sleep: what the built-in VFS had before we came. A VFS with an
 * xSleep of its own (a test's, a simulation's) keeps it. */
static int (*system_sleep)(sqlite3_vfs *, int);

static void replace_all(void)
{
	sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");

	if (!unix_vfs)
		unix_vfs = sqlite3_vfs_find(NULL);
	if (!unix_vfs)
		return;
	if (!system_sleep)
		system_sleep = unix_vfs->xSleep;
	for (sqlite3_vfs *vfs = sqlite3_vfs_find(NULL); vfs; vfs = vfs->pNext)
		if (vfs->xSleep == system_sleep)
			__atomic_store_n(&vfs->xSleep, sleep_until_deadline, __ATOMIC_RELEASE);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool wanted; /* real-time timers are in use */

void sleep_before_real_time(void)
{
	pthread_mutex_lock(&lock);
	wanted = true;
	if (sqlite3_api)
		replace_all();
	pthread_mutex_unlock(&lock);
}

void sleep_after_attach(void)
{
	pthread_mutex_lock(&lock);
	if (wanted)
		replace_all();
	pthread_mutex_unlock(&lock);
}
