/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/process_files.h"

#define MEMORY_NAME "/memfd:queryprof" /* as shared_ring_memory() names it */

/* A command that records. */
struct recorder {
	pid_t pid;
	char path[PATH_MAX]; /* of its trace file; "" not known */
	uint64_t device, inode;
	VECTOR(struct memory {
		int number;
		uint64_t inode;
	})
	memories;
	VECTOR(pid_t) processes; /* the process whose end it awaits */
};

static void recorder_free(struct recorder *recorder)
{
	vector_free(&recorder->memories);
	vector_free(&recorder->processes);
}

/* --- who records ----------------------------------------------------------------------- */

static void note_descriptor(struct recorder *recorder, int number)
{
	char link[32], at[PATH_MAX], info[32];
	struct stat status;
	ssize_t size;
	long long pid = -1, flags;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)recorder->pid, number);
	snprintf(info, sizeof(info), "fdinfo/%d", number);
	size = readlink(link, at, sizeof(at) - 1);
	at[size > 0 ? size : 0] = '\0';
	if (strncmp(at, MEMORY_NAME, strlen(MEMORY_NAME)) == 0 && stat(link, &status) == 0) {
		vector_push(&recorder->memories, (struct memory){ number, status.st_ino });
	} else if (strcmp(at, "anon_inode:[pidfd]") == 0) {
		pid = process_number(recorder->pid, 0, info, "Pid", 10);
	} else if (strncmp(at, "/proc/", 6) == 0) { /* before Linux 5.3 */
		pid = atoi(at + 6);
	} else if (at[0] == '/' && !recorder->path[0] &&
	           (flags = process_number(recorder->pid, 0, info, "flags", 8)) >= 0 && (flags & O_PATH) &&
	           stat(link, &status) == 0) {
		strcpy(recorder->path, at); /* NOLINT: of the same size */
		recorder->device = status.st_dev;
		recorder->inode = status.st_ino;
	}
	if (pid > 0)
		vector_push(&recorder->processes, (pid_t)pid);
}

/* False: it does not record, or this user may not look. */
static bool recorder_read(struct recorder *recorder, pid_t pid, bool *is_refused)
{
	char name[16];
	DIR *descriptors;

	*recorder = (struct recorder){ .pid = pid };
	process_name(pid, 0, name, sizeof(name));
	if (pid == getpid() || strcmp(name, "queryprof") != 0)
		return false;
	descriptors = process_folder(pid, "fd");
	*is_refused |= !descriptors && errno == EACCES;
	for (int number; (number = process_next(descriptors)) >= 0;)
		note_descriptor(recorder, number);
	if (recorder->path[0])
		return true;
	recorder_free(recorder);
	return false;
}

/* The inode of the process's shared memory; 0: it has none, or this user may not look. */
static uint64_t memory_of(pid_t pid)
{
	unsigned long long inode = 0;
	FILE *maps = process_file(pid, 0, "maps");
	char *line = NULL;
	size_t room = 0;

	while (maps && !inode && getline(&line, &room, maps) > 0)
		if (strstr(line, MEMORY_NAME) && sscanf(line, "%*s %*s %*s %*s %llu", &inode) != 1)
			inode = 0;
	free(line);
	if (maps)
		fclose(maps);
	return inode;
}

/* --- what they record --------------------------------------------------------------------- */

static struct live_process *find(struct live *live, uint64_t inode)
{
	for (size_t i = 0; i < live->processes.count; i++)
		if (live->processes.items[i].inode == inode)
			return &live->processes.items[i];
	return NULL;
}

static const struct memory *find_memory(const struct recorder *recorder, uint64_t inode)
{
	for (size_t i = 0; i < recorder->memories.count; i++)
		if (recorder->memories.items[i].inode == inode)
			return &recorder->memories.items[i];
	return NULL;
}

static void open_memory(struct live_process *process, const struct recorder *recorder, int number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)recorder->pid, number);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	process->is_open = fd >= 0 && shared_ring_open_to_inspect(&process->shared, fd);
	if (fd >= 0 && !process->is_open)
		close(fd);
}

static void close_memory(struct live_process *process)
{
	const int fd = process->shared.fd;

	if (!process->is_open)
		return;
	shared_ring_close(&process->shared);
	close(fd);
}

static void add_process(struct live *live, const struct recorder *recorder, pid_t pid)
{
	const uint64_t inode = memory_of(pid);
	const struct memory *memory = find_memory(recorder, inode);
	struct live_process *process = memory ? find(live, inode) : NULL;

	/* A process that becomes another program has none for a moment. */
	if (!memory)
		return;
	if (!process && (process = vector_add(&live->processes))) {
		process->pid = pid;
		process->inode = inode;
		open_memory(process, recorder, memory->number);
	}
	if (process)
		process->is_there = true;
}

static bool is_recorded_by(const struct recorder *recorder, pid_t pid)
{
	for (size_t i = 0; i < recorder->processes.count; i++)
		if (recorder->processes.items[i] == pid)
			return true;
	return false;
}

static bool set_path(struct live *live, const struct recorder *recorder)
{
	if (live->path)
		return true;
	live->path = strdup(recorder->path);
	live->device = recorder->device;
	live->inode = recorder->inode;
	return live->path != NULL;
}

static void inspect_recorder(struct live *live, const struct recorder *recorder)
{
	bool is_one = live->pid && is_recorded_by(recorder, live->pid);

	if (live->pid ? !is_one || !set_path(live, recorder)
	              : recorder->device != live->device || recorder->inode != live->inode)
		return;
	for (size_t i = 0; i < recorder->processes.count; i++)
		if (!live->pid || recorder->processes.items[i] == live->pid)
			add_process(live, recorder, recorder->processes.items[i]);
}

/* Returns the number of recordings. *is_refused: one of them belongs to another user. */
static int inspect_recorders(struct live *live, bool *is_refused)
{
	DIR *processes = process_folder(0, NULL);
	struct recorder recorder;
	int count = 0;

	for (pid_t pid; (pid = process_next(processes)) >= 0;) {
		if (!recorder_read(&recorder, pid, is_refused))
			continue;
		inspect_recorder(live, &recorder);
		count += live->pid ? is_recorded_by(&recorder, live->pid)
		                   : recorder.device == live->device && recorder.inode == live->inode;
		recorder_free(&recorder);
	}
	return count;
}

static int inspect(struct live *live, bool *is_refused)
{
	int count;
	size_t kept = 0;

	for (size_t i = 0; i < live->processes.count; i++)
		live->processes.items[i].is_there = false;
	count = inspect_recorders(live, is_refused);
	for (size_t i = 0; i < live->processes.count; i++) {
		struct live_process *process = &live->processes.items[i];

		if (process->is_there && process->is_open) {
			/* Before the copies, because a run in a copy has lasted at least until then. */
			process->at_ns = clock_ns(CLOCK_MONOTONIC);
			if (!shared_ring_copy_open(&process->shared, &process->changed)) {
				close_memory(process);
				process->is_open = false;
			}
		}
		if (process->is_there)
			live->processes.items[kept++] = *process;
		else
			close_memory(process);
	}
	live->processes.count = kept;
	return count;
}

void live_inspect(struct live *live)
{
	bool is_refused = false;

	inspect(live, &is_refused);
}

void live_close(struct live *live)
{
	for (size_t i = 0; i < live->processes.count; i++)
		close_memory(&live->processes.items[i]);
	vector_free(&live->processes);
	free(live->path);
	*live = (struct live){ .pid = 0 };
}

/* --- what the command line names ------------------------------------------------------------ */

/* Every message about a process that is not recorded comes from here. */
static int complain_of_process(const char *command, pid_t pid, bool is_refused)
{
	char name[16], path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &status) != 0)
		return complain("%s: there is no process %d", command, (int)pid);
	process_name(pid, 0, name, sizeof(name));
	text_blank_controls(name);
	if (status.st_uid != geteuid() && geteuid() != 0)
		return complain(
			"%s: process %d belongs to another user: run queryprof %s as that user, or as root",
			command, (int)pid, command);
	return complain(
		"%s: process %d (%s) is not recorded%s: `queryprof dump %d` shows what it does now, and "
		"`queryprof attach %d` records it from its next query on",
		command, (int)pid, name, is_refused ? " by this user" : " now", (int)pid, (int)pid);
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

static int open_process(const char *command, const char *target, struct live *live, pid_t *unrecorded)
{
	const long long pid = strtoll(target, NULL, 10);
	bool is_refused = false;

	if (pid <= 0 || pid > INT_MAX)
		return complain("%s: %s; expected a process id, or a trace file (./%s)", command, target,
		                target);
	live->pid = (pid_t)pid;
	if (inspect(live, &is_refused))
		return COMMAND_FINE;
	if (!unrecorded || !process_state(live->pid, 0))
		return complain_of_process(command, live->pid, is_refused);
	*unrecorded = live->pid;
	return COMMAND_FINE;
}

static int open_file(const char *command, const char *target, struct live *live)
{
	bool is_refused = false;
	struct stat status;

	if (stat(target, &status) != 0)
		return trace_file_complain(target);
	live->path = strdup(target);
	live->device = status.st_dev;
	live->inode = status.st_ino;
	if (!live->path)
		return complain("%s: out of memory", command);
	if (inspect(live, &is_refused))
		return COMMAND_FINE;
	return complain("%s: %s: no queryprof%s records to this file now; to read it: queryprof report %s",
	                command, target, is_refused ? " of this user" : "", target);
}

int live_open(const char *command, const char *target, struct live *live, pid_t *unrecorded)
{
	int result;

	*live = (struct live){ .pid = 0 };
	if (unrecorded)
		*unrecorded = 0;
	result = is_number(target) ? open_process(command, target, live, unrecorded)
	                           : open_file(command, target, live);
	if (result || (unrecorded && *unrecorded))
		live_close(live);
	return result;
}

/* --- threads ------------------------------------------------------------------------------------ */

/* The id in the innermost pid namespace: the last number in the line NSpid of `status`. */
static uint32_t inner_id(pid_t process, pid_t thread)
{
	FILE *file = process_file(process, thread, "status");
	const char *last = NULL;
	char line[512];

	while (file && !last && fgets(line, sizeof(line), file))
		if (strncmp(line, "NSpid:", strlen("NSpid:")) == 0)
			last = strrchr(line, '\t');
	if (file)
		fclose(file);
	return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

/* The thread's number as this command sees it. */
static uint32_t outer_id(const struct live_process *process, uint32_t thread_id)
{
	DIR *threads;

	if (process->shared.identity.process_id == process->pid)
		return thread_id;
	threads = process_folder(process->pid, "task");
	for (pid_t thread; (thread = process_next(threads)) >= 0;)
		if (inner_id(process->pid, thread) == thread_id) {
			closedir(threads);
			return (uint32_t)thread;
		}
	return 0;
}

const char *live_state_name(char state)
{
	switch (state) {
	case 'R': return "on CPU";
	case 'S': return "sleeping";
	case 'D': return "waiting for the disk";
	case 'T':
	case 't': return "stopped";
	default: return "";
	}
}

struct live_thread live_thread_inspect(const struct live_process *process, uint32_t thread_id)
{
	const uint32_t number = outer_id(process, thread_id);
	struct live_thread thread = { .state = "" };

	if (!number)
		return thread;
	thread.state = live_state_name(process_state(process->pid, (pid_t)number));
	process_name(process->pid, (pid_t)number, thread.name, sizeof(thread.name));
	return thread;
}
