/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/unrecorded.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/attach/inspection.h"
#include "cmd/attach/sqlite_code.h"
#include "cmd/attach/symbols.h"
#include "cmd/live/database_locks.h"
#include "cmd/live/processes.h"
#include "cmd/live/values.h"
#include "cmd/ui/process_files.h"
#include "frames/address.h"
#include "modules/module_map.h"
#include "sql_live_unrecorded_tables.h"
#include "symbol/elf_image.h"
#include "symbol/perf_map.h"
#include "wire/wait.h"

/* --- the address space of another process, for names of its code ------------------------------------ */

struct foreign_space {
	struct address_space space; /* first: its functions get it */
	pid_t process;
	int64_t start_ns; /* of the process, since 1970 */
	struct module_map map;
};

static const struct module *locate(const struct address_space *space, uint64_t address)
{
	return module_map_find(&((const struct foreign_space *)space)->map, address);
}

static char *name_generated(const struct address_space *space, uint64_t address)
{
	const struct foreign_space *foreign = (const struct foreign_space *)space;

	return perf_map_name(foreign->process, foreign->start_ns, address);
}

/* Its path here, if that is the same file, because debug files are found by it; otherwise its path through
 * /proc. */
static const char *path_here(const struct target *target, const struct target_object *object,
                             char inside[PATH_MAX])
{
	struct stat here, there;

	snprintf(inside, PATH_MAX, "/proc/%d/root%s", (int)target->process, object->path);
	return stat(inside, &there) == 0 && stat(object->path, &here) == 0 && here.st_dev == there.st_dev &&
	                       here.st_ino == there.st_ino
	               ? object->path
	               : inside;
}

/* False: out of memory. A file that is not an ELF object has no code with names. */
static bool add_object(struct foreign_space *foreign, const struct target *target,
                       const struct target_object *object)
{
	struct module *module;
	struct elf_image image;
	char inside[PATH_MAX], build_id[BUILD_ID_TEXT] = "";
	const char *path = path_here(target, object, inside);
	struct module found = {
		.start = object->start, .end = object->end, .path = path, .died = UINT32_MAX
	};

	if (!symbols_find_bias(&(struct object_memory){ .process = target->process }, object->base,
	                       &found.bias))
		return true;
	if (elf_image_open(&image, path)) {
		elf_image_build_id(&image, build_id);
		found.file_size = image.size;
		found.mtime_ns = image.mtime_ns;
		elf_image_close(&image);
	}
	found.build_id = build_id;
	module = module_copy(&found);
	if (module && module_map_add(&foreign->map, module))
		return true;
	free(module);
	return false;
}

static int64_t start_time(pid_t process)
{
	const uint64_t up = process_start_ticks(process) * NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + up);
}

/* False: out of memory. Close it in both cases. */
static bool foreign_space_open(struct foreign_space *foreign, const struct target *target)
{
	bool done = true;

	*foreign = (struct foreign_space){ .space = { .locate = locate, .name_generated = name_generated },
		                           .process = target->process,
		                           .start_ns = start_time(target->process) };
	for (size_t i = 0; done && i < target->objects.count; i++)
		done = add_object(foreign, target, &target->objects.items[i]);
	return done;
}

static void foreign_space_close(struct foreign_space *foreign)
{
	for (size_t i = 0; i < foreign->map.count; i++)
		free((void *)foreign->map.items[i]);
	module_map_free(&foreign->map);
}

struct taking {
	struct unrecorded *unrecorded;
	const struct target *target;
	const struct inspection *inspection;
	const struct sqlite_codes *codes;
	struct foreign_space space;
	sqlite3_stmt *runs, *outside, *databases, *locks;
	int code;
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static void bind_process(sqlite3_stmt *row, pid_t process)
{
	char name[16] = "";

	if (process)
		process_name(process, 0, name, sizeof(name));
	text_blank_controls(name);
	live_bind_text(row, ":program", name[0] ? name : NULL);
	if (process)
		live_bind_number(row, ":process_id", process);
	else
		live_bind_text(row, ":process_id", NULL);
}

/* --- stacks --------------------------------------------------------------------------------------- */

struct names {
	char *list[INSPECTION_FRAMES];
	uint32_t count;
};

static void name_frames(const struct taking *taking, const struct inspected_thread *thread,
                        struct names *names)
{
	names->count = thread->frame_count;
	for (uint32_t i = 0; i < names->count; i++)
		names->list[i] = address_text(&taking->space.space, thread->frames[i]);
}

static void free_names(struct names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->list[i]);
}

static const char *name_of(const struct names *names, uint32_t frame)
{
	return frame < names->count && names->list[frame] ? names->list[frame] : "";
}

/* sqlite3_malloc'ed. */
static char *stack_from(const struct names *names, uint32_t first)
{
	sqlite3_str *text = sqlite3_str_new(NULL);

	for (uint32_t i = first; i < names->count; i++)
		sqlite3_str_appendf(text, "%s%s", i > first ? "\n" : "", name_of(names, i));
	return sqlite3_str_finish(text);
}

/* The library that contains the address; NULL: not a SQLite library. */
static const struct sqlite_code *code_at(const struct taking *taking, uint64_t address)
{
	for (size_t i = 0; i < taking->codes->list.count; i++) {
		const struct target_object *object = taking->codes->list.items[i].object;

		if (address >= object->start && address < object->end)
			return &taking->codes->list.items[i];
	}
	return NULL;
}

/* The frame of SQLite's function that the program has called; NULL: the thread is outside. */
static const struct sqlite_code *find_entry(const struct taking *taking,
                                            const struct inspected_thread *thread, const struct names *names,
                                            uint32_t *frame)
{
	const struct sqlite_code *code;

	for (*frame = thread->frame_count; (*frame)-- > 0;)
		if (strncmp(name_of(names, *frame), "sqlite3_", 8) == 0 &&
		    (code = code_at(taking, thread->frames[*frame])))
			return code;
	return NULL;
}

/* --- waits ---------------------------------------------------------------------------------------- */

static const struct {
	int call;
	enum wait_cause cause;
} causes[] = {
	{ SYS_nanosleep, WAIT_SLEEP },  { SYS_clock_nanosleep, WAIT_SLEEP },
	{ SYS_futex, WAIT_FUTEX },      { SYS_fcntl, WAIT_LOCK },
	{ SYS_fsync, WAIT_SYNC },       { SYS_fdatasync, WAIT_SYNC },
	{ SYS_msync, WAIT_SYNC },       { SYS_sync_file_range, WAIT_SYNC },
	{ SYS_read, WAIT_READ },        { SYS_pread64, WAIT_READ },
	{ SYS_readv, WAIT_READ },       { SYS_preadv, WAIT_READ },
	{ SYS_write, WAIT_WRITE },      { SYS_pwrite64, WAIT_WRITE },
	{ SYS_writev, WAIT_WRITE },     { SYS_pwritev, WAIT_WRITE },
	{ SYS_ppoll, WAIT_POLL },       { SYS_pselect6, WAIT_POLL },
	{ SYS_epoll_pwait, WAIT_POLL }, { SYS_recvfrom, WAIT_NETWORK },
	{ SYS_recvmsg, WAIT_NETWORK },  { SYS_sendto, WAIT_NETWORK },
	{ SYS_sendmsg, WAIT_NETWORK },  { SYS_connect, WAIT_NETWORK },
	{ SYS_accept4, WAIT_NETWORK },  { SYS_wait4, WAIT_PROCESS },
	{ SYS_waitid, WAIT_PROCESS },   { SYS_openat, WAIT_FILE },
	{ SYS_ftruncate, WAIT_FILE },   { SYS_unlinkat, WAIT_FILE },
#ifdef SYS_poll
	{ SYS_poll, WAIT_POLL },        { SYS_select, WAIT_POLL },
	{ SYS_epoll_wait, WAIT_POLL },  { SYS_accept, WAIT_NETWORK },
	{ SYS_open, WAIT_FILE },        { SYS_unlink, WAIT_FILE },
#endif
};

static enum wait_cause cause_of_call(int call)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].call == call)
			return causes[i].cause;
	return WAIT_NONE;
}

#define SLEEP_FRAMES 8

/* Whether SQLite itself sleeps, as it does before it tries to lock again: a library's code calls libc. In
 * a program that contains SQLite, the name of SQLite's function distinguishes it from the program. */
static bool is_sleep_of_sqlite(const struct taking *taking, const struct inspected_thread *thread,
                               const struct names *names)
{
	const struct target_object *program = &taking->target->objects.items[0];

	for (uint32_t i = 0; i < thread->frame_count && i < SLEEP_FRAMES; i++) {
		const struct target_object *object = target_object_at(taking->target, thread->frames[i]);
		const struct sqlite_code *code = code_at(taking, thread->frames[i]);

		if (code && (code->object != program || strcmp(name_of(names, i), "unixSleep") == 0))
			return true;
		if (!code && (!object || object->kind != OBJECT_LIBC))
			return false;
	}
	return false;
}

static enum wait_cause cause_of(const struct taking *taking, const struct inspected_thread *thread,
                                const struct names *names)
{
	enum wait_cause cause = cause_of_call(thread->call);

	/* After a stop the kernel continues three kinds of calls through another call. */
	if (thread->call == SYS_restart_syscall)
		cause = strstr(name_of(names, 0), "nanosleep") ? WAIT_SLEEP
		        : strstr(name_of(names, 0), "poll")    ? WAIT_POLL
		                                               : WAIT_FUTEX;
	return cause == WAIT_SLEEP && is_sleep_of_sqlite(taking, thread, names) ? WAIT_LOCK : cause;
}

/* --- threads -------------------------------------------------------------------------------------- */

/* What the thread does, with the frames from this one on. */
static void bind_thread(const struct taking *taking, sqlite3_stmt *row, const struct inspected_thread *thread,
                        const struct names *names, uint32_t first)
{
	const struct unrecorded *unrecorded = taking->unrecorded;
	char *stack = stack_from(names, first), name[16];

	process_name(unrecorded->process, thread->id, name, sizeof(name));
	live_bind_number(row, ":process_id", unrecorded->process);
	live_bind_text(row, ":program", unrecorded->program);
	live_bind_number(row, ":thread_id", thread->id);
	live_bind_text(row, ":thread_name", name[0] ? name : NULL);
	live_bind_text(row, ":state", live_state_name(thread->state));
	live_bind_text(row, ":wait_cause", wait_cause_name(cause_of(taking, thread, names)));
	live_bind_text(row, ":stack", stack);
	live_bind_number(row, ":stack_is_truncated", !thread->is_whole);
	sqlite3_free(stack);
}

static void add_run(struct taking *taking, const struct inspected_thread *thread, const struct names *names,
                    const struct inspected_statement *statement, uint32_t depth, uint32_t frame)
{
	const struct sqlite_code *code = code_at(taking, thread->frames[frame]);

	bind_thread(taking, taking->runs, thread, names,
	            statement && depth < thread->statement_count ? frame : 0);
	live_bind_number(taking->runs, ":depth", depth);
	live_bind_text(taking->runs, ":function", name_of(names, frame));
	live_bind_text(taking->runs, ":query",
	               statement && statement->size ? taking->inspection->texts + statement->text : NULL);
	live_bind_number(taking->runs, ":is_cut", statement && statement->is_cut);
	live_bind_text(taking->runs, ":library_path", code ? code->object->path : NULL);
	live_insert(taking->runs, &taking->code);
}

static void add_thread(struct taking *taking, const struct inspected_thread *thread)
{
	struct unrecorded *unrecorded = taking->unrecorded;
	struct names names;
	uint32_t frame;
	bool is_inside;

	if (thread->error && thread->error != ESRCH && !unrecorded->unseen++) {
		unrecorded->unseen_thread = thread->id;
		unrecorded->unseen_wait =
			wait_cause_name(cause_of_call(process_call(unrecorded->process, thread->id)));
	}
	unrecorded->threads += thread->error != ESRCH;
	if (thread->stopped_ns > unrecorded->stopped_ns)
		unrecorded->stopped_ns = thread->stopped_ns;
	if (thread->error)
		return;
	name_frames(taking, thread, &names);
	for (uint32_t i = 0; i < thread->statement_count; i++)
		add_run(taking, thread, &names, &thread->statements[i], thread->statement_count - i,
		        thread->statements[i].frame);
	is_inside = thread->statement_count || find_entry(taking, thread, &names, &frame);
	unrecorded->inside += is_inside;
	if (!is_inside) {
		bind_thread(taking, taking->outside, thread, &names, 0);
		live_insert(taking->outside, &taking->code);
	} else if (!thread->statement_count) {
		add_run(taking, thread, &names, NULL, 1, frame);
	}
	free_names(&names);
}

/* --- files ---------------------------------------------------------------------------------------- */

static void add_databases(struct taking *taking)
{
	struct database_locks locks;

	database_locks_read(&locks, taking->unrecorded->process);
	taking->unrecorded->is_refused = locks.is_refused;
	for (size_t i = 0; i < locks.databases.count; i++) {
		live_bind_text(taking->databases, ":path", locks.databases.items[i].path);
		live_bind_number(taking->databases, ":is_wal", locks.databases.items[i].is_wal);
		live_insert(taking->databases, &taking->code);
	}
	for (size_t i = 0; i < locks.locks.count; i++) {
		const struct database_lock *lock = &locks.locks.items[i];

		live_bind_text(taking->locks, ":database", locks.databases.items[lock->database].path);
		live_bind_text(taking->locks, ":lock", wait_lock_name(lock->lock));
		live_bind_number(taking->locks, ":is_exclusive", lock->is_exclusive);
		bind_process(taking->locks, lock->process);
		live_insert(taking->locks, &taking->code);
	}
	database_locks_free(&locks);
}

/* --- all of it ------------------------------------------------------------------------------------ */

static const char insert_run[] = "INSERT INTO runs VALUES (:process_id, :program, :thread_id, :thread_name, "
				 ":depth, :state, :wait_cause, "
				 ":function, :query, :is_cut, :library_path, :stack, :stack_is_truncated)";
static const char insert_outside[] =
	"INSERT INTO outside VALUES (:process_id, :program, :thread_id, :thread_name, "
	":state, :wait_cause, :stack, :stack_is_truncated)";
static const char insert_database[] = "INSERT INTO databases VALUES (:path, :is_wal)";
static const char insert_lock[] =
	"INSERT INTO locks VALUES (:database, :lock, :is_exclusive, :process_id, :program)";

static void prepare(struct taking *taking, const char *sql, sqlite3_stmt **row)
{
	if (!taking->code)
		taking->code = sqlite3_prepare_v2(taking->unrecorded->db, sql, -1, row, NULL);
}

static void inspect_threads(struct taking *taking)
{
	struct unrecorded *unrecorded = taking->unrecorded;
	struct inspection *inspection = inspection_make(taking->target, taking->codes);

	if (!inspection || !foreign_space_open(&taking->space, taking->target)) {
		taking->code = SQLITE_NOMEM;
	} else {
		taking->inspection = inspection;
		memcpy(unrecorded->sentence, inspection->sentence, sizeof(unrecorded->sentence));
		unrecorded->unseen = inspection->unseen;
		unrecorded->threads = inspection->unseen;
		for (uint32_t i = 0; i < inspection->count && !inspection->sentence[0]; i++)
			add_thread(taking, &inspection->threads[i]);
	}
	foreign_space_close(&taking->space);
	inspection_free(inspection);
}

static void inspect(struct taking *taking)
{
	struct unrecorded *unrecorded = taking->unrecorded;
	struct sqlite_codes codes = { .nameless = 0 };
	struct target target;

	if (target_open_to_inspect(&target, unrecorded->process, unrecorded->sentence)) {
		taking->target = &target;
		taking->codes = &codes;
		if (!sqlite_codes_find(&codes, &target))
			taking->code = SQLITE_NOMEM;
		unrecorded->has_sqlite = codes.list.count != 0;
		if (codes.nameless)
			snprintf(unrecorded->nameless, sizeof(unrecorded->nameless), "%s",
			         codes.nameless_object->path);
		inspect_threads(taking);
	}
	sqlite_codes_free(&codes);
	target_close(&target);
}

int unrecorded_take(struct unrecorded *unrecorded, pid_t process)
{
	struct taking taking = { .unrecorded = unrecorded };

	*unrecorded = (struct unrecorded){ .process = process, .unseen_wait = "" };
	unrecorded->now_ns = clock_ns(CLOCK_REALTIME);
	process_name(process, 0, unrecorded->program, sizeof(unrecorded->program));
	text_blank_controls(unrecorded->program);
	taking.code = sqlite3_open(":memory:", &unrecorded->db);
	if (!taking.code)
		taking.code = sqlite3_exec(unrecorded->db, sql_live_unrecorded_tables, NULL, NULL, NULL);
	prepare(&taking, insert_run, &taking.runs);
	prepare(&taking, insert_outside, &taking.outside);
	prepare(&taking, insert_database, &taking.databases);
	prepare(&taking, insert_lock, &taking.locks);
	if (!taking.code)
		inspect(&taking);
	if (!taking.code)
		add_databases(&taking);
	sqlite3_finalize(taking.runs);
	sqlite3_finalize(taking.outside);
	sqlite3_finalize(taking.databases);
	sqlite3_finalize(taking.locks);
	return taking.code;
}

void unrecorded_free(struct unrecorded *unrecorded)
{
	sqlite3_close(unrecorded->db);
}
