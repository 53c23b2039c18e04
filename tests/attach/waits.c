/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that waits with each call that has a time limit, and prints the calls that failed or ended early. It
 * loads SQLite and runs no query.
 *
 * usage: waits SECONDS
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#define WAIT_MS 50
#define WAIT_NS (WAIT_MS * 1000000L)

static int nothing[2], epoll;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sigset_t signals;

static struct timespec deadline(void)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += WAIT_NS;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

static bool by_nanosleep(void)
{
	return nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL) == 0;
}

static bool by_usleep(void)
{
	return usleep(WAIT_MS * 1000) == 0;
}

static bool by_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, WAIT_MS) == 0;
}

static bool by_poll(void)
{
	struct pollfd polled = { .fd = nothing[0], .events = POLLIN };

	return poll(&polled, 1, WAIT_MS) == 0;
}

static bool by_select(void)
{
	struct timeval left = { .tv_usec = WAIT_MS * 1000L };
	fd_set read;

	FD_ZERO(&read);
	FD_SET(nothing[0], &read);
	return select(nothing[0] + 1, &read, NULL, NULL, &left) == 0;
}

static bool by_semaphore(void)
{
	struct timespec at = deadline();

	return sem_timedwait(&semaphore, &at) == -1 && errno == ETIMEDOUT;
}

static bool by_condition(void)
{
	struct timespec at = deadline();
	int error;

	pthread_mutex_lock(&mutex);
	error = pthread_cond_timedwait(&condition, &mutex, &at);
	pthread_mutex_unlock(&mutex);
	return error == ETIMEDOUT;
}

static bool by_signals(void)
{
	return sigtimedwait(&signals, NULL, &(struct timespec){ .tv_nsec = WAIT_NS }) == -1 &&
	       errno == EAGAIN;
}

static const struct {
	const char *name;
	bool (*wait)(void);
} waits[] = {
	{ "nanosleep", by_nanosleep },
	{ "usleep", by_usleep },
	{ "epoll_wait", by_epoll },
	{ "poll", by_poll },
	{ "select", by_select },
	{ "sem_timedwait", by_semaphore },
	{ "pthread_cond_timedwait", by_condition },
	{ "sigtimedwait", by_signals },
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

int main(int argc, char **argv)
{
	const int64_t end = now_ns() + (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9);
	struct epoll_event event = { .events = EPOLLIN };
	int wrong = 0;

	if (!sqlite3_libversion_number() || pipe(nothing) || (epoll = epoll_create1(0)) < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, nothing[0], &event) || sem_init(&semaphore, 0, 0))
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	while (now_ns() < end)
		for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
			const int64_t begin = now_ns();
			bool waited;

			errno = 0;
			waited = waits[i].wait();
			if (waited && now_ns() - begin >= WAIT_NS - 5000000)
				continue;
			wrong = 1;
			printf("%s: %s\n", waits[i].name, waited ? "too short" : strerror(errno));
		}
	puts(wrong ? "wrong" : "right");
	return wrong;
}
