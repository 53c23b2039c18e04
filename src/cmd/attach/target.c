/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/filters.h"
#include "cmd/ui/process_files.h"
#include "wire/version.h"

/* --- /proc ---------------------------------------------------------------------------------- */

static bool has_shadow_stack(pid_t process)
{
	FILE *file = process_file(process, 0, "status");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file))
		found = strncmp(line, "x86_Thread_features:", 20) == 0 && strstr(line, "shstk");
	if (file)
		fclose(file);
	return found;
}

/* --- objects -------------------------------------------------------------------------------- */

static const struct {
	const char *begin; /* of the file's name */
	enum object_kind kind;
} kinds[] = {
	{ "libc.so.6", OBJECT_LIBC },
	{ "libc-2.", OBJECT_LIBC },
	{ "libpthread", OBJECT_LIBC },
	{ "libdl.so.2", OBJECT_LIBC },
	{ "libdl-2.", OBJECT_LIBC },
	{ "librt.so.1", OBJECT_LIBC },
	{ "librt-2.", OBJECT_LIBC },
	{ "ld-linux-x86-64.so.2", OBJECT_LOADER },
	{ "ld-2.", OBJECT_LOADER },
	{ "libjemalloc", OBJECT_MALLOC },
	{ "libtcmalloc", OBJECT_MALLOC },
	{ "libmimalloc", OBJECT_MALLOC },
	{ "libasan.so", OBJECT_MALLOC },
	{ "libtsan.so", OBJECT_MALLOC },
	{ "libhoard", OBJECT_MALLOC },
	{ "libsnmalloc", OBJECT_MALLOC },
	{ "memfd:queryprof-recorder", OBJECT_RECORDER },
	{ "libqueryprof", OBJECT_RECORDER },
};

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum object_kind kind_of(const char *path)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(file_name(path), kinds[i].begin, strlen(kinds[i].begin)) == 0)
			return kinds[i].kind;
	return OBJECT_OTHER;
}

static bool add_mapping(struct target *target, uint64_t start, uint64_t end, uint64_t offset,
                        const char *path)
{
	struct target_object *newest =
		target->objects.count ? &target->objects.items[target->objects.count - 1] : NULL;
	struct target_object added = { kind_of(path), start, end, start, strdup(path) };

	if (newest && strcmp(newest->path, path) == 0 && offset) {
		newest->end = end;
		free(added.path);
		return true;
	}
	if (added.path && vector_push(&target->objects, added))
		return true;
	free(added.path);
	return false;
}

static bool read_maps(struct target *target)
{
	FILE *file = process_file(target->process, 0, "maps");
	bool done = file != NULL;
	char *line = NULL;
	size_t room = 0;

	while (done && getline(&line, &room, file) > 0) {
		unsigned long long start, end, offset;
		int path = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &start, &end, &offset, &path) >= 3 &&
		    path && line[path] == '/')
			done = add_mapping(target, start, end, offset, line + path);
	}
	free(line);
	if (file)
		fclose(file);
	return done;
}

/* libc keeps the structure of a thread at the end of its stack. */
bool target_is_thread_stack(pid_t process, uint64_t stack, uint64_t self)
{
	FILE *file = process_file(process, 0, "maps");
	bool is_found = false, is_one = false;
	char *line = NULL;
	size_t room = 0;

	while (file && !is_found && getline(&line, &room, file) > 0) {
		unsigned long long start, end;

		is_found = sscanf(line, "%llx-%llx", &start, &end) == 2 && stack - start < end - start;
		is_one = is_found && ((self > stack && self < end) || strstr(line, "[stack]"));
	}
	free(line);
	if (file)
		fclose(file);
	return is_one;
}

const struct target_object *target_object_at(const struct target *target, uint64_t address)
{
	for (size_t i = 0; i < target->objects.count; i++)
		if (address - target->objects.items[i].start <
		    target->objects.items[i].end - target->objects.items[i].start)
			return &target->objects.items[i];
	return NULL;
}

static const struct target_object *find_object(const struct target *target, const char *name)
{
	for (size_t i = 0; i < target->objects.count; i++)
		if (strncmp(file_name(target->objects.items[i].path), name, strlen(name)) == 0)
			return &target->objects.items[i];
	return NULL;
}

/* --- refusals -------------------------------------------------------------------------------- */

#define REFUSE(sentence, ...) (snprintf((sentence), SENTENCE_SIZE, __VA_ARGS__), false)

static bool is_32_bit(pid_t process)
{
	unsigned char head[EI_CLASS + 1] = "";
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)process);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fread(head, 1, sizeof(head), file) != sizeof(head))
		head[EI_CLASS] = ELFCLASS64;
	fclose(file);
	return head[EI_CLASS] == ELFCLASS32;
}

/* Whether tracing may be refused by Yama: -1: there is none. */
static int ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = -1;
	if (file)
		fclose(file);
	return scope;
}

bool target_refuse(const struct target *target, char sentence[SENTENCE_SIZE])
{
	const pid_t process = target->process;
	const int scope = ptrace_scope();
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)process);
	if (stat(path, &status))
		return REFUSE(sentence, "there is no process %d (or /proc is not mounted)", (int)process);
	if (status.st_uid != geteuid() && geteuid() != 0)
		return REFUSE(sentence,
		              "it belongs to another user (%u): run queryprof %s as that user, or as root",
		              (unsigned)status.st_uid, target->command);
	if (scope > 0)
		return REFUSE(
			sentence,
			"the kernel's setting kernel.yama.ptrace_scope is %d: run queryprof %s as root%s",
			scope, target->command,
			scope < 3 ? ", or set it to 0 (sysctl kernel.yama.ptrace_scope=0)" : "");
	return REFUSE(sentence,
	              "it may not be traced from here: run queryprof %s as root, or in a container with the "
	              "capability SYS_PTRACE (docker run --cap-add SYS_PTRACE)",
	              target->command);
}

static bool check_status(pid_t process, char *sentence)
{
	const char state = process_state(process, 0);
	long long tracer;

	if (process == getpid())
		return REFUSE(sentence, "that is this command");
	if (!state)
		return REFUSE(sentence, "there is no process %d (or /proc is not mounted)", (int)process);
	if (state == 'Z' || state == 'X')
		return REFUSE(sentence, "it has ended");
	if (state == 'T')
		return REFUSE(sentence, "it is stopped by a signal: let it continue first (kill -CONT %d)",
		              (int)process);
	tracer = process_number(process, 0, "status", "TracerPid", 10);
	if (tracer > 0)
		return REFUSE(sentence, "process %lld traces it (a debugger, strace): end that first",
		              tracer);
	if (process_number(process, 0, "status", "Tgid", 10) != process)
		return REFUSE(sentence, "that is a thread of process %lld: give its process",
		              process_number(process, 0, "status", "Tgid", 10));
	return true;
}

/* The reason why a filter would kill the process for one of the recorder's calls. */
static bool check_guards(pid_t process, char *sentence)
{
	long long filters, own;

	filters = process_number(process, 0, "status", "Seccomp_filters", 10);
	own = process_number(getpid(), 0, "status", "Seccomp_filters", 10);
	if (filters < 0) /* Linux before 5.9 */
		filters = process_number(process, 0, "status", "Seccomp", 10) > 0, own = filters_here();
	if (filters > own || process_number(process, 0, "status", "Seccomp", 10) == 1)
		return REFUSE(sentence, "it has a seccomp filter that this command has not, which may kill "
		                        "it for a system call "
		                        "of queryprof's: start it with queryprof record");
	if (has_shadow_stack(process))
		return REFUSE(sentence, "it has a shadow stack: start it with queryprof record");
	return true;
}

static bool is_alive(const struct attachment *now)
{
	return now->is_recorded && now->command != getpid() && process_runs(now->command, now->command_start);
}

/* False: the process has no recorder of this version. */
static bool read_attachment(struct target *target, const struct target_object *recorder)
{
	const struct object_memory memory = { .process = target->process };
	struct symbols symbols;

	if (symbols_read(&symbols, &memory, recorder->base)) {
		target->attached = symbols_find(&symbols, "queryprof_attached");
		target->attachment = symbols_find(&symbols, "queryprof_attachment");
	}
	symbols_free(&symbols);
	return target->attached && target->attachment &&
	       object_read(&memory, target->attachment, &target->now, sizeof(target->now)) &&
	       memcmp(target->now.version, wire_version, sizeof(wire_version)) == 0;
}

bool target_is_recorded(pid_t process, pid_t command)
{
	struct target target = { .process = process, .turn = -1 };
	const struct target_object *recorder =
		read_maps(&target) ? find_object(&target, "memfd:queryprof-recorder") : NULL;
	bool is_recorded = recorder && read_attachment(&target, recorder) && target.now.is_recorded &&
	                   target.now.command == command;

	target_close(&target);
	return is_recorded;
}

/* A recorder that an earlier command has left, or that is recording. */
static bool check_recorder(struct target *target, char *sentence)
{
	const struct target_object *recorder = find_object(target, "memfd:queryprof-recorder");

	if (find_object(target, "libqueryprof-preload"))
		return REFUSE(sentence,
		              "it was started by queryprof record: its recording has what attach would see");
	if (find_object(target, "libqueryprof.so"))
		return REFUSE(sentence, "it has loaded libqueryprof.so, so it can be asked by SQL (SELECT "
		                        "... FROM trace_log)");
	if (!recorder)
		return true;
	if (!read_attachment(target, recorder))
		return REFUSE(
			sentence,
			"another version of queryprof was attached to it before: use that version, or start "
			"the process anew");
	if (is_alive(&target->now))
		return REFUSE(sentence, "process %d (queryprof) is attached to it already",
		              (int)target->now.command);
	return true;
}

/* The process's allocator is known by the name of its library, or it is in the program. */
static bool check_malloc(struct target *target, char *sentence)
{
	const struct object_memory memory = { .process = target->process };
	struct symbols symbols;
	bool found = false;

	if (symbols_read(&symbols, &memory, target->objects.items[0].base))
		found = symbols_find(&symbols, "malloc") != 0;
	symbols_free(&symbols);
	return !found ||
	       REFUSE(sentence,
	              "its program has a malloc() of its own, so nobody can tell from outside whether it "
	              "holds a lock: start it with queryprof record");
}

static bool check_libc(struct target *target, char *sentence)
{
	const struct object_memory memory = { .process = target->process };
	const struct target_object *libc = find_object(target, "libc.so.6"), *loader, *part;

	if (find_object(target, "ld-musl") || find_object(target, "libc.musl"))
		return REFUSE(sentence, "its C library is musl, with which attach does not work: start it "
		                        "with queryprof record");
	libc = libc ? libc : find_object(target, "libc-2.");
	loader = find_object(target, "ld-linux-x86-64.so.2");
	loader = loader ? loader : find_object(target, "ld-2.");
	if (!libc || !loader)
		return REFUSE(sentence, "it is a static program, or has another C library than glibc; "
		                        "queryprof needs a dynamic program with glibc");
	if (!symbols_read(&target->libc, &memory, libc->base) ||
	    !symbols_read(&target->loader, &memory, loader->base))
		return REFUSE(sentence, "the symbols of its C library (%s) cannot be read", libc->path);
	part = find_object(target, "libdl");
	if (part)
		(void)symbols_read(&target->parts, &memory, part->base);
	target->dlopen = symbols_find(&target->libc, "dlopen");
	if (!target->dlopen)
		target->dlopen = symbols_find(&target->parts, "dlopen");
	if (!target->dlopen)
		target->dlopen = symbols_find(&target->libc, "__libc_dlopen_mode");
	return target->dlopen || REFUSE(sentence, "its C library (%s) has no dlopen()", libc->path);
}

#define TURN_NS (20 * NS_PER_S)

/* Commands take turns, also with the child of a command that was killed, because a thread has one tracer.
 * Returns a descriptor to hold meanwhile, also by the process that stops threads; -1: the turn did not
 * come in time. */
static int await_turn(pid_t process)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	char path[32];
	int turn;

	snprintf(path, sizeof(path), "/proc/%d", (int)process);
	turn = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (turn >= 0 && flock(turn, LOCK_EX | LOCK_NB)) {
		if (clock_ns(CLOCK_MONOTONIC) - begin > TURN_NS) {
			close(turn);
			return -1;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return turn;
}

/* The process and its mapped files. */
static bool open_process(struct target *target, pid_t process, const char *command,
                         char sentence[SENTENCE_SIZE])
{
	*target = (struct target){ .process = process, .command = command, .turn = await_turn(process) };
#ifndef __x86_64__
	return REFUSE(sentence,
	              "queryprof %s of a process that is not recorded needs x86-64: start the program "
	              "with queryprof record",
	              command);
#endif
	if (!check_status(process, sentence))
		return false;
	if (is_32_bit(process))
		return REFUSE(sentence, "it is a 32-bit program; queryprof needs a 64-bit one");
	if (!read_maps(target))
		return errno == ENOMEM ? REFUSE(sentence, "out of memory") : target_refuse(target, sentence);
	return target->objects.count || target_refuse(target, sentence);
}

bool target_open(struct target *target, pid_t process, char sentence[SENTENCE_SIZE])
{
	return open_process(target, process, "attach", sentence) && check_guards(process, sentence) &&
	       check_libc(target, sentence) && check_recorder(target, sentence) &&
	       check_malloc(target, sentence);
}

bool target_open_to_inspect(struct target *target, pid_t process, char sentence[SENTENCE_SIZE])
{
	return open_process(target, process, "dump", sentence);
}

void target_close(struct target *target)
{
	for (size_t i = 0; i < target->objects.count; i++)
		free(target->objects.items[i].path);
	vector_free(&target->objects);
	symbols_free(&target->libc);
	symbols_free(&target->loader);
	symbols_free(&target->parts);
	if (target->turn >= 0)
		close(target->turn);
}
