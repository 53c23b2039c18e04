/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/confined.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/own_calls.h"
#include "base/own_process.h"
#include "handover/handover.h"
#include "handover/storing.h"
#include "recorder/mark.h"
#include "hook/confine.h"
#include "sqlite/session/recording.h"
#include "timers/signal.h"

static const struct confined_process *process;

/* Written before the filter is installed, by the thread that installs it. */
static char sentence[1600];
static bool is_sentence_set; /* atomic */
static bool is_refused;      /* atomic: nothing is recorded */

const char *confined_sentence(void)
{
	return __atomic_load_n(&is_sentence_set, __ATOMIC_ACQUIRE) ? sentence : NULL;
}

const char *confined_refusal(void)
{
	return __atomic_load_n(&is_refused, __ATOMIC_ACQUIRE) ? sentence : NULL;
}

static void add(const char *between, const char *text)
{
	size_t used = strlen(sentence);

	snprintf(sentence + used, sizeof(sentence) - used, "%s%s", used ? between : "", text);
}

static const char *const losses[OWN_LOSSES] = {
	[LOST_TIMERS] = "timers no longer take samples",
	[LOST_NEW_TIMERS] = "threads whose first query comes later have no samples of timers",
	[LOST_CPU] = "CPU times of later runs are too small",
	[LOST_SWITCHES] = "page faults, switches and bytes read or written are not counted, and CPU times "
			  "are less exact",
	[LOST_MODULES] = "calls of SQLite from modules that are loaded later may be missing",
	[LOST_THREADS] = "threads whose first query comes later are not recorded",
	[LOST_CHILDREN] = "children that are forked later are not recorded",
};

/* Losses of earlier filters remain, because a process may install several. */
static unsigned all_losses;
static void make_sentence(const struct confinement *confinement, const char *storing)
{
	char count[100];

	all_losses |= confinement->losses;
	*sentence = '\0';
	snprintf(count, sizeof(count), "the program's seccomp filter forbids %zu of queryprof's system calls",
	         confinement->forbidden);
	add("", count);
	if (storing)
		add(": ", storing);
	if (all_losses & 1u << LOST_TIMERS)
		all_losses &= ~(1u << LOST_NEW_TIMERS);
	for (int i = 0; i < OWN_LOSSES; i++)
		if (all_losses >> i & 1 && !is_refused)
			add(storing || strchr(sentence, ':') ? "; " : ": ", losses[i]);
	if (!strchr(sentence, ':'))
		add(": ", "recording works without them");
	__atomic_store_n(&is_sentence_set, true, __ATOMIC_RELEASE);
}

static const char *end_store(void)
{
	bool is_elsewhere = handover_is_done();

	if (!is_elsewhere)
		process->stop();
	storing_here()->confine("the program's seccomp filter forbids the system calls of the store");
	if (is_elsewhere)
		return "use queryprof record to store later samples";
	__atomic_store_n(&is_refused, true, __ATOMIC_RELEASE);
	return "queries are no longer recorded";
}

static void begins(const struct confinement *confinement)
{
	const char *storing = NULL;
	bool is_running = process->is_running();

	if (confinement->callers & (BY_STORE | BY_THREAD))
		storing = is_running ? end_store() : "no query is recorded";
	if (confinement->losses & 1u << LOST_TIMERS)
		signal_silence();
	make_sentence(confinement, storing);
	if (storing && !is_running)
		__atomic_store_n(&is_refused, true, __ATOMIC_RELEASE);
	if (session_recording())
		mark_write(MARK_CONFINED, sentence);
}

static void was_refused(void)
{
	*sentence = '\0';
	all_losses = 0;
	signal_speak_again();
	__atomic_store_n(&is_sentence_set, false, __ATOMIC_RELEASE);
	storing_here()->confine_no_more();
	__atomic_store_n(&is_refused, false, __ATOMIC_RELEASE);
	process->start_again();
}

static const struct confine_callbacks callbacks = {
	.is_here = own_process_is_here,
	.begins = begins,
	.was_refused = was_refused,
};

void confined_follow(const struct confined_process *given)
{
	process = given;
	confine_follow(&callbacks);
}
