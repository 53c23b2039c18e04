/* SPDX-License-Identifier: Apache-2.0 */
#include "base/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/environment.h"
#include "base/regular_file.h"
#include "base/signal_hold.h"
#include "base/sys.h"
#include "base/text.h"

#define LINE_BYTES 1024

unsigned debug_topics;
DEFINE_ADDRESS_OF_RECORDER(unsigned, debug_topics)

static const char *const topic_names[DEBUG_TOPICS] = {
	[DEBUG_HOOKS] = "hooks",
	[DEBUG_SYMBOLS] = "symbols",
	[DEBUG_STORE] = "store",
	[DEBUG_TIMERS] = "timers",
};

/* The environment is read once: later the host may be changing it on another thread. */
static char bad_value[160], folder[PATH_MAX] = "/tmp", file[PATH_MAX];
static int write_errno; /* of the newest line that could not be written; relaxed atomic */

/* All bits for "all", 0 for an unknown name. */
static unsigned topics_of(const char *name, size_t size)
{
	if (size == 3 && !memcmp(name, "all", 3))
		return (1u << DEBUG_TOPICS) - 1;
	for (int i = 0; i < DEBUG_TOPICS; i++)
		if (strlen(topic_names[i]) == size && !memcmp(topic_names[i], name, size))
			return 1u << i;
	return 0;
}

__attribute__((constructor)) static void read_environment(void)
{
	const char *at = environment_value("QUERYPROF_DEBUG"), *given;
	unsigned topics = 0;

	if ((given = environment_value("QUERYPROF_DEBUG_FILE")))
		snprintf(file, sizeof(file), "%s", given);
	if ((given = environment_value("TMPDIR")) && *given)
		snprintf(folder, sizeof(folder), "%s", given);

	while (at && *at) {
		size_t size = strcspn(at, ",");
		unsigned named = topics_of(at, size);

		if (!named) {
			snprintf(bad_value, sizeof(bad_value),
			         "QUERYPROF_DEBUG: \"%.*s\" is not one of hooks, symbols, store, timers, all",
			         size > 40 ? 40 : (int)size, at);
			return;
		}
		topics |= named;
		at += size + (at[size] == ',');
	}
	debug_topics = topics;
}

static int open_file(void)
{
	char of_process[PATH_MAX + 40];

	snprintf(of_process, sizeof(of_process), "%s/queryprof-debug.%d.log", folder, (int)getpid());
	return regular_file_make(*file ? file : of_process, O_WRONLY | O_APPEND);
}

static bool append(int fd, const char *line, size_t size)
{
	struct signal_hold hold = signal_hold(SIGXFSZ);
	bool is_written = write(fd, line, size) >= 0;

	signal_release(&hold, !is_written && errno == EFBIG);
	return is_written;
}

void debug_write(enum debug_topic topic, const char *format, ...)
{
	int saved_errno = errno, cancel = cancel_hold(), fd;
	char line[LINE_BYTES];
	struct timespec now;
	va_list arguments;
	struct tm utc;
	size_t size;

	clock_read(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	size = strftime(line, sizeof(line), "%FT%T", &utc);
	size += (size_t)snprintf(line + size, sizeof(line) - size, ".%06ldZ %d/%u %s: ", now.tv_nsec / 1000,
	                         (int)getpid(), sys_gettid(), topic_names[topic]);
	va_start(arguments, format);
	vsnprintf(line + size, sizeof(line) - size - 1, format, arguments);
	va_end(arguments);
	size = strlen(line);
	line[size++] = '\n';
	fd = open_file();
	if (fd < 0 || !append(fd, line, size))
		__atomic_store_n(&write_errno, errno, __ATOMIC_RELAXED);
	if (fd >= 0)
		close(fd);
	cancel_release(cancel);
	errno = saved_errno;
}

char *debug_error(void)
{
	int error = __atomic_load_n(&write_errno, __ATOMIC_RELAXED);

	if (*bad_value || !error)
		return *bad_value ? strdup(bad_value) : NULL;
	return text_format("the debug log cannot be written: %s (QUERYPROF_DEBUG_FILE)", strerror(error));
}
