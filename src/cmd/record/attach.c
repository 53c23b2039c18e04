/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof attach: records a running process for a time, and detaches from it.
 * The process gets the recorder by ptrace() (cmd/attach/injection.h), and hands over its ring like a process
 * that `record` has started. At the end, a second call removes the recorder's hooks.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/attach/injection.h"
#include "cmd/attach/inspection.h"
#include "cmd/file/replaced_file.h"
#include "cmd/line/moment.h"
#include "cmd/record/background.h"
#include "cmd/ui/keeper.h"
#include "cmd/ui/process_files.h"
#include "cmd/record/messages.h"
#include "cmd/record/recording.h"
#include "cmd/record/rings.h"
#include "cmd/record/summary.h"
#include "cmd/record/tree.h"

static const char *time_limit, *whole_tree;

static const struct command_option options[] = {
	COMMAND_OPTION("for", "TIME", OPTION_SECONDS, &time_limit,
	               "how long, such as 60s or 5min (default: until the process ends, or Ctrl-C)"),
	COMMAND_FLAG("tree", &whole_tree,
	             "also the processes that it has started or starts, and those that they start, if they "
	             "have SQLite loaded; looked for once a second"),
	{ 0 },
};

/* --- statements that began before ---------------------------------------------------------------- */

/* The recorder sees the statements that the process executes at this moment only from their next call on, so
 * the command prints them. */
#define BEGUN_LINES_MAX 5
#define BEGUN_TEXT_MAX 300

/* Stops each thread for a moment (cmd/attach/inspection.h). NULL: nothing can be seen. */
static struct inspection *inspect_begun_before(pid_t process)
{
	struct sqlite_codes codes = { .nameless = 0 };
	char sentence[SENTENCE_SIZE];
	struct inspection *inspection = NULL;
	struct target target;

	if (target_open_to_inspect(&target, process, sentence) && sqlite_codes_find(&codes, &target))
		inspection = inspection_make(&target, &codes);
	sqlite_codes_free(&codes);
	target_close(&target);
	return inspection;
}

static void say_begun_before(const struct inspection *inspection, const struct inspected_thread *thread)
{
	/* The innermost is the first. */
	const struct inspected_statement *statement = &thread->statements[thread->statement_count - 1];
	char *text = statement->size
	                     ? text_format("%.*s", BEGUN_TEXT_MAX, inspection->texts + statement->text)
	                     : NULL;

	if (text)
		text_blank_controls(text);
	complain("thread %d executed this statement already; it is recorded from its next call on: %s",
	         (int)thread->id, text ? text : "(its text is not known)");
	free(text);
}

/* Prints a line for each of the outermost statements, a few at most, and frees the inspection. */
static void say_all_begun_before(struct inspection *inspection)
{
	unsigned found = 0;

	for (uint32_t i = 0; inspection && !inspection->sentence[0] && i < inspection->count; i++)
		if (inspection->threads[i].statement_count && ++found <= BEGUN_LINES_MAX)
			say_begun_before(inspection, &inspection->threads[i]);
	if (found > BEGUN_LINES_MAX)
		complain("%u more threads did so", found - BEGUN_LINES_MAX);
	inspection_free(inspection);
}

/* --- the call ------------------------------------------------------------------------------------ */

/* All that the recorder reads from the environment. False: it is too long. */
static bool copy_environment(struct attach_request *request)
{
	size_t used = 0;

	for (char **at = environ; *at; at++) {
		size_t size = strlen(*at) + 1;

		if (strncmp(*at, "QUERYPROF_", 10) != 0)
			continue;
		if (used + size + 1 > sizeof(request->environment))
			return false;
		memcpy(request->environment + used, *at, size);
		used += size;
	}
	return true;
}

/* Starts the recorder (`ended` 0), or ends the recording that this command has started. sentence: the
 * reason after an error. */
static bool call(pid_t process, const char *library, pid_t ended, struct injection *injection,
                 char sentence[SENTENCE_SIZE])
{
	struct attach_request request = { .begins = !ended,
		                          .ended = ended,
		                          .command = getpid(),
		                          .command_start = process_start_ticks(getpid()) };
	struct target target;
	bool done;

	if (!copy_environment(&request))
		return snprintf(sentence, SENTENCE_SIZE, "the settings in the environment are too long"),
		       false;
	snprintf(request.path, sizeof(request.path), "%s",
	         strlen(library) < sizeof(request.path) ? library : "");
	done = target_open(&target, process, sentence);
	if (done && (!ended || target.now.is_recorded) &&
	    !injection_run(injection, &target, library, &request)) {
		memcpy(sentence, injection->sentence, SENTENCE_SIZE);
		done = false;
	}
	target_close(&target);
	return done;
}

static void say(const char *what, pid_t process, const struct injection *injection)
{
	if (!recording_quiet)
		complain("%s process %d; one of its threads was stopped for %.1f ms, no other for more than "
		         "%.1f ms",
		         what, (int)process, (double)injection->stopped_ns / 1e6,
		         (double)injection->looked_ns / 1e6);
}

static bool attach(pid_t process, const char *library)
{
	char sentence[SENTENCE_SIZE] = "";
	struct injection injection = { 0 };
	struct inspection *before = recording_quiet ? NULL : inspect_begun_before(process);
	bool done = call(process, library, 0, &injection, sentence);

	if (done) {
		say("attached to", process, &injection);
		say_all_begun_before(before);
	} else {
		complain("attach: process %d cannot be recorded: %s", (int)process, sentence);
		inspection_free(before);
	}
	return done;
}

/* Detaches from all processes that are recorded for that command: the one that it attached to, and those
 * that were forked since. Returns their number. left: how many remain. */
static unsigned detach_once(pid_t command, const char *library, bool says, unsigned *left)
{
	DIR *processes = process_folder(0, NULL);
	unsigned done = 0;

	*left = 0;
	for (pid_t process; (process = process_next(processes)) >= 0;) {
		char sentence[SENTENCE_SIZE] = "";
		struct injection injection = { 0 };

		if (!target_is_recorded(process, command))
			continue;
		if (call(process, library, command, &injection, sentence)) {
			say("detached from", process, &injection);
			done++;
		} else {
			*left += 1;
			if (says)
				complain("attach: process %d keeps the recorder's hooks until queryprof "
				         "attach is run again: %s",
				         (int)process, sentence);
		}
	}
	return done;
}

/* Also detaches from processes that are forked meanwhile, with a second between two attempts. The last
 * attempt reports the remaining processes. */
static void detach(pid_t command, const char *library, unsigned attempts)
{
	unsigned left = 1;

	for (unsigned i = 1; left && i <= attempts; i++) {
		if (i > 1)
			nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
		while (detach_once(command, library, i == attempts, &left))
			;
	}
}

/* --- if the command is killed -------------------------------------------------------------------- */

/* A recorder whose command has ended would continue to sample for no one. */
struct kept {
	pid_t command;
	const char *library;
};

static void detach_later(const void *context)
{
	const struct kept *kept = context;

	detach(kept->command, kept->library, 60);
}

/* --- waiting ------------------------------------------------------------------------------------- */

static void attach_found(void *library, pid_t process)
{
	if (!target_is_recorded(process, getpid())) /* it was forked by one that is */
		(void)attach(process, library);
}

/* Waits until the processes end, the time is over, or a signal ends the recording: that signal, or 0. */
static int await_end(struct tree *tree, char *library, int signals, uint64_t limit_ns)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	/* Without a pidfd, the process is polled. */
	const int process_fd =
		whole_tree ? -1 : (int)syscall(SYS_pidfd_open, tree->known.items[0].process, 0);
	const uint64_t pause = whole_tree ? NS_PER_S : process_fd < 0 ? NS_PER_S / 10 : UINT64_MAX;
	struct signalfd_siginfo signal = { .ssi_signo = 0 };
	struct pollfd polled[] = { { .fd = signals, .events = POLLIN },
		                   { .fd = process_fd, .events = POLLIN } };

	do {
		const uint64_t past = clock_ns(CLOCK_MONOTONIC) - begin;
		uint64_t left = limit_ns > past ? limit_ns - past : 0;
		struct timespec next;

		if (!left)
			break;
		if (whole_tree)
			tree_search(tree, attach_found, library);
		left = left < pause ? left : pause;
		next = timespec_of_ns(left);
		if (ppoll(polled, 2, left == UINT64_MAX ? NULL : &next, NULL) <= 0)
			continue;
		/* A signal that is not read would end the page, too. */
		if (polled[0].revents && read(signals, &signal, sizeof(signal)) < 0)
			signal.ssi_signo = 0;
		break;
	} while (tree_runs(tree));
	if (process_fd >= 0)
		close(process_fd);
	return (int)signal.ssi_signo;
}

/* --- the command ---------------------------------------------------------------------------------- */

static int take(const struct command_option *option, const char *value)
{
	recording_command = "attach";
	return recording_take(option, value);
}

/* -1: not a process id. */
static int parse_process(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	return *text >= '1' && *text <= '9' && !*end && number <= INT_MAX ? (int)number : -1;
}

static bool parse_limit(uint64_t *limit_ns)
{
	int64_t ns;

	*limit_ns = UINT64_MAX;
	if (time_limit && (!moment_parse_duration(time_limit, &ns) || ns <= 0))
		return false;
	if (time_limit)
		*limit_ns = (uint64_t)ns;
	return true;
}

static int record_process(pid_t process, char *library, uint64_t limit_ns)
{
	struct recording recording = { .path = NULL };
	const struct kept kept = { getpid(), library };
	struct tree tree = { .known = { 0 } };
	struct keeper keeper;
	int signals, signal;
	sigset_t ending;

	(void)keeper_start(&keeper, true, detach_later, &kept);
	if (recording_begin(&recording)) {
		keeper_dismiss(&keeper);
		return recording_undo(&recording, COMMAND_FAILED);
	}
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	signals = signalfd(-1, &ending, SFD_CLOEXEC);
	rings_open();
	recording_watch(&recording);
	if (!tree_add(&tree, process) || !attach(process, library)) {
		tree_free(&tree);
		keeper_dismiss(&keeper);
		collection_fold(rings_finish());
		return recording_undo(&recording, COMMAND_FAILED);
	}
	replaced_file_remove();
	signal = await_end(&tree, library, signals, limit_ns);
	tree_free(&tree);
	detach(getpid(), library, 1);
	keeper_dismiss(&keeper);
	recording.collection = rings_finish();
	rings_leave();
	background_end(BACKGROUND_PUSH);
	summary_print(&recording, NULL, 0);
	messages_end();
	rings_cancel();
	recording_show(signal == SIGTERM || signal == SIGHUP);
	return COMMAND_FINE;
}

static int run(int argc, char **argv)
{
	const int process = parse_process(argv[0]);
	char library[PATH_MAX];
	uint64_t limit_ns;
	int result;

	(void)argc;
	recording_command = "attach";
	if (process < 0) {
		complain("attach: %s; expected a process id", argv[0]);
		return COMMAND_MISUSED;
	}
	if (!parse_limit(&limit_ns)) {
		complain("attach: --for %s; expected a time with its unit, such as 60s or 5min", time_limit);
		return COMMAND_MISUSED;
	}
	result = recording_prepare();
	if (!result)
		result = recording_find_library(library);
	return result ? result : record_process(process, library, limit_ns);
}

const struct command command_attach = {
	.name = "attach",
	.arguments = "[OPTION]... PID",
	.summary = "Records what the queries of a running process do",
	.details =
		"The process needs no change. queryprof stops one of its threads for some milliseconds, at "
		"a moment when the thread holds no lock of the C library, and has it load the recorder from "
		"memory. From then on, the process and every child that it forks are recorded as by record; "
		"with --tree, those that it forked before and the programs that it starts, too. The "
		"recording ends after --for, at Ctrl-C, or when the process ends. The process continues "
		"without queryprof's hooks, timers and descriptors; the recorder's memory stays in it.\n\n"
		"The process must be a dynamic x86-64 program with glibc and a shared SQLite library. You "
		"must be its user, or root. If it cannot be attached, a message gives the reason and what "
		"to do. The recording of a statement that already runs begins with its next call.",
	.examples = "  queryprof attach --for 60s -o app.trace 4711\n"
		    "  queryprof attach --new --cpu 1ms $(pidof -s server)\n"
		    "  queryprof attach --tree --for 5min $(pgrep -o php-fpm)\n",
	.options = options,
	.shared = recording_options,
	.shared_title = "the recording, as in record",
	.arguments_min = 1,
	.arguments_max = 1,
	.take = take,
	.run = run,
};
