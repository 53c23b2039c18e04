/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording: samples the queries of every connection, and no connection notices.
 *
 * An extension receives SQLite's routines with a connection. Here there is none, so the table of
 * routines is filled by name from the library, without calling it. The library is hooked as usual;
 * its connections only lack a session, which the first statement makes (sqlite/session/recording.c).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/filters.h"
#include "base/loader.h"
#include "base/lock.h"
#include "base/text.h"
#include "recorder/mark.h"
#include "recorder/process.h"
#include "recorder/record.h"
#include "hook/confine.h"
#include "modules/modules.h"
#include "sqlite/calls/hooks.h"
#include "sqlite/library/library.h"
#include "sqlite/plan/bytecode.h"
#include "sqlite/runs/session_life.h"
#include "sqlite/session/recording.h"
#include "sqlite/calls/adopt.h"
#include "timers/threads.h"

/* A table of routines for each library. */
static struct sqlite3_api_routines routines[HOST_LIBRARIES_MAX];
static int routines_count;

static const struct {
	const char *name;
	size_t offset;
} members[] = {
#define ROUTINE(member, name)                                                                                \
	{                                                                                                    \
		name, offsetof(struct sqlite3_api_routines, member)                                          \
	}
#include "api_members.h"
#undef ROUTINE
};

/* Routines that the library does not have stay NULL, as in a table of its own. */
static void fill_routines(struct sqlite3_api_routines *to, void *handle)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		void *routine = dlsym(handle, members[i].name);

		memcpy((char *)to + members[i].offset, &routine, sizeof(routine));
	}
}

static bool is_old(const struct sqlite3_api_routines *api)
{
	return api->libversion && api->libversion_number && api->libversion_number() < HOST_OLDEST_NUMBER;
}

static bool has_needed(const struct sqlite3_api_routines *api)
{
	return api->libversion && api->libversion_number && api->step && api->prepare_v2 && api->trace_v2 &&
	       api->mprintf && api->free;
}

enum { NOT_TRIED, TRYING, FAILED, STARTED };
static int state;          /* atomic */
static bool is_left_alone; /* atomic: a filter that queryprof did not see may kill the process for any call */
static __thread bool is_starting;

/* Before anything is called that the process does not call itself. */
static bool try_to_start(void)
{
	if (filters_are_unseen(confine_seen())) {
		__atomic_store_n(&is_left_alone, true, __ATOMIC_RELAXED);
		mark_plainly();
		error_set(QP_SYSTEM, FILTERS_UNSEEN);
		return false;
	}
	return qp_init(NULL) == QP_OK;
}

/* Another thread of the parent was working on it; that thread does not exist in the child. */
static void start_in_child(void)
{
	if (state == TRYING && !is_starting)
		state = NOT_TRIED;
}

BOUNDED_WAIT_DEFINE(for_start, "a first query: another thread starts the sampler", NS_PER_S,
                    "nothing, so it looks every ms: that thread takes a few");

/* The sampler starts with the first query or automatic extension, or with the first opening by a
 * SQLite inside the program. A process without any of these is unchanged. */
static bool start_sampling(void)
{
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE), cancel;
	struct bounded_wait wait = bounded_wait_begin(&for_start);

	if (is_starting)
		return false; /* a signal handler of the host's */
	cancel = cancel_hold();
	is_starting = true;
	if (now == NOT_TRIED &&
	    __atomic_compare_exchange_n(&state, &now, TRYING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		now = try_to_start() ? STARTED : FAILED;
		mark_write(now == FAILED ? MARK_LOST : MARK_STARTED, now == FAILED ? qp_error() : "");
		/* Of follow() on another thread either this look sees the objects that came, or that one sees
		 * the state. */
		__atomic_store_n(&state, now, __ATOMIC_SEQ_CST);
		if (now == STARTED)
			modules_refresh(false);
	}
	is_starting = false;
	/* A few milliseconds. Not without end, as the thread that starts may need a lock that the
	 * host holds here. */
	while (now == TRYING && bounded_wait_nap(&wait, BOUND_MS(1)))
		now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	if (now == STARTED)
		hooks_follow(); /* whose slots were not known yet */
	cancel_release(cancel);
	return now == STARTED;
}

static int refuse(const char *path, const char *why)
{
	char *line = text_format("%s: %s", path, why);

	if (line)
		mark_write(MARK_REFUSED, line);
	free(line);
	return error_set(QP_SQLITE, "qp_record: %s: %s", path, why);
}

static int adopt(const struct sqlite_library *library)
{
	struct sqlite3_api_routines *api = &routines[routines_count];
	/* The reference is kept, because the hooks contain addresses in it. */
	void *handle = loader_find(library->path, 0);
	char *error = NULL;
	int code = QP_OK;

	if (!handle)
		return refuse(library->path, "it cannot be used");
	fill_routines(api, handle);
	if (is_old(api)) {
		error = text_format("it is SQLite %s, which is older than " HOST_OLDEST, api->libversion());
		code = refuse(library->path, error ? error : "it is too old");
		free(error);
	} else if (!has_needed(api)) {
		code = refuse(library->path, "it lacks some of SQLite's functions");
	} else if (host_find(api)) {
		/* The extension came first, or this one hands on to one that we have. */
	} else if (routines_count++, host_adopt(api, &error)) { /* counted before it is in use */
		return QP_OK;
	} else {
		routines_count--;
		code = refuse(library->path, error ? error : "SQLite refused");
		api->free(error);
	}
	dlclose(handle);
	return code;
}

static bool recording;

static void begin_recording(const char *path)
{
	if (recording)
		return;
	session_record_all(start_sampling);
	mark_write(MARK_SQLITE, path);
	recording = true;
}

static struct library_search search;

/* Takes on the libraries that have come. */
static int follow(void)
{
	struct sqlite_library library;
	int code = QP_NOT_FOUND;

	while (routines_count < HOST_LIBRARIES_MAX && library_next(&search, &library)) {
		code = adopt(&library);
		if (!code)
			begin_recording(library.path);
	}
	if (recording) {
		if (__atomic_load_n(&state, __ATOMIC_SEQ_CST) == STARTED)
			modules_refresh(false); /* objects have come; no thread of the library's looks */
		hooks_follow();
		return QP_OK;
	}
	return code == QP_NOT_FOUND ? error_set(QP_SQLITE, "qp_record: no shared SQLite library is loaded")
	                            : code;
}

/* Does the postponed work. */
static void follow_was_cut(void)
{
	search = (struct library_search){ 0 };
}

static void forget(void)
{
	session_record_all(NULL);
	process_flush_sums(); /* without the hooks they are forgotten */
	hooks_restore();
	process_end_recording();
	threads_delete_timers();
	bytecode_publish_again();
	search = (struct library_search){ 0 };
	recording = false;
	__atomic_store_n(&state, NOT_TRIED, __ATOMIC_SEQ_CST);
}

LOCK_DEFINE(lock, LOCK_RECORD, .at_fork = LOCK_BRIEFLY, .lost = follow_was_cut, .in_child = start_in_child);

int qp_record(void)
{
	int code;

	if (__atomic_load_n(&is_left_alone, __ATOMIC_RELAXED))
		return QP_OK;
	/* Not waited for, because the caller may hold the loader's lock, which the other thread needs. */
	if (!lock_try(&lock))
		return QP_OK;
	code = follow();
	lock_release(&lock);
	return code;
}

void record_begin_again(void)
{
	sessions_end_old();
}

bool record_end(void)
{
	/* A thread that starts the sampler would do so with the old ring. */
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == TRYING || !lock_try(&lock))
		return false;
	forget();
	lock_release(&lock);
	return true;
}

static int follow_static(const void *table)
{
	struct static_copy *copy = malloc(sizeof(*copy));
	bool known = false;
	char *why = NULL;
	int code = QP_OK;

	if (!copy)
		return error_set(QP_NOMEM, "qp_record_static: no memory");
	if (!copies_find_table(table, copy))
		code = error_set(QP_INVALID, "qp_record_static: no object has these routines");
	else if ((why = static_adopt(copy, &known)))
		code = refuse(copy->path, why);
	else if (!known) {
		begin_recording(copy->path);
		hooks_follow();
	}
	free(why);
	free(copy);
	return code;
}

BOUNDED_WAIT_DEFINE(for_library, "a SQLite that is followed: another thread follows one", NS_PER_S,
                    "that thread, when it is done");

int qp_record_static(const struct sqlite3_api_routines *table)
{
	struct bounded_wait wait = bounded_wait_begin(&for_library);
	const struct host_library *library;
	int code;

	/* The thread that has it patches the functions that the caller will call next. But not without
	 * end: see qp_record(). */
	if (!lock_acquire_within(&lock, &wait))
		return error_set(QP_SYSTEM, "qp_record_static: another thread takes too long");
	code = follow_static(table);
	lock_release(&lock);
	/* The host opens its first connection, or it registers an automatic extension. */
	library = code ? NULL : host_find(table);
	if (library)
		recording_learn(library, __builtin_frame_address(0));
	return code;
}
