/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/limits.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BYTES_LEAST (INT64_C(256) << 20)

static char sentence[200];

/* The private copies are removed when this process has ended. */
static void give_up(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, sentence, strlen(sentence)) < 0) {
		/* nobody reads it */
	}
	_exit(1);
}

void limits_set(const char *command, int64_t bytes, int64_t ns)
{
	const struct sigaction action = { .sa_handler = give_up };
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0) {
		const rlim_t most = (rlim_t)(4 * bytes + BYTES_LEAST);

		limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	snprintf(sentence, sizeof(sentence),
	         "queryprof: %s: a statement could not be interrupted, and nothing can be said\n", command);
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned)(2 * ns / 1000000000 + 30));
}
