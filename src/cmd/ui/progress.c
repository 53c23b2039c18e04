/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See progress.h. The line is short and plain, so it works on every terminal.
 */
#include "cmd/ui/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS 1000000000
#define EVERY_NS 250000000
#define STEPS 20000 /* of SQLite's machine, between two readings of the clock: less than a ms */

static struct {
	const char *doing; /* NULL: none */
	int64_t count;     /* of finished things; 0: not known */
	const char *things;
	int64_t start_ns, shown_ns;
	int width; /* of the current line */
	bool is_stopped;
	int64_t limit_ns; /* 0: no limit */
} progress;

/* From libc, unlike base/clock.h, so that a test can advance it (tests/command/test_outputs.py). */
static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void show(int64_t now)
{
	char text[80];

	if (progress.count)
		snprintf(text, sizeof(text), "queryprof: %s, %lld %s", progress.doing,
		         (long long)progress.count, progress.things);
	else
		snprintf(text, sizeof(text), "queryprof: %s, %lld s", progress.doing,
		         (long long)((now - progress.start_ns) / 1000000000));
	int width = (int)strlen(text);
	fprintf(stderr, "%s%*s\r", text, progress.width > width ? progress.width - width : 0, "");
	fflush(stderr);
	progress.width = width;
	progress.shown_ns = now;
}

static void show_if_due(void)
{
	int64_t now;

	if (!progress.doing)
		return;
	now = clock_ns();
	if (now - progress.start_ns >= FIRST_NS && now - progress.shown_ns >= EVERY_NS)
		show(now);
}

void progress_begin(const char *doing)
{
	if (progress.is_stopped || !isatty(STDERR_FILENO))
		return;
	if (!progress.doing)
		progress.start_ns = clock_ns();
	progress.doing = doing;
	progress.count = 0;
	show_if_due();
}

void progress_count(int64_t count, const char *things)
{
	progress.count = count;
	progress.things = things;
	if (count % 256 == 0)
		show_if_due();
}

void progress_end(void)
{
	if (progress.width) {
		fprintf(stderr, "%*s\r", progress.width, "");
		fflush(stderr);
	}
	progress.width = 0;
	progress.doing = NULL;
}

void progress_stop(void)
{
	progress_end();
	progress.is_stopped = true;
}

void progress_clear(void)
{
	if (isatty(STDOUT_FILENO))
		progress_end();
}

static int on_sqlite_progress(void *context)
{
	(void)context;
	show_if_due();
	return progress_is_late(); /* 0: continue */
}

void progress_watch(sqlite3 *db)
{
	sqlite3_progress_handler(db, STEPS, on_sqlite_progress, NULL);
}

bool progress_is_late(void)
{
	return progress.limit_ns && clock_ns() >= progress.limit_ns;
}

void progress_limit(int seconds)
{
	progress.limit_ns = clock_ns() + seconds * INT64_C(1000000000);
}
