/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways in through SQLite: the extension's entry point, every later connection of the process
 * (auto-extension), qp_attach(), and a connection's settings from C.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/loader.h"
#include "base/lock.h"
#include "collect/state.h"
#include "recorder/process.h"
#include "sql/explain_analyze.h"
#include "sql/functions.h"
#include "sql/metrics.h"
#include "sql/pragma.h"
#include "sql/schema.h"
#include "sql/trace_file_functions.h"
#include "sqlite/calls/hooks.h"
#include "sqlite/library/auto_extensions.h"
#include "sqlite/library/calling.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/runs/own_statements.h"
#include "sqlite/runs/session_life.h"
#include "sqlite/runs/trace_callback.h"
#include "sqlite/session/session.h"
#include "sqlite/session/setting_change.h"
#include "sqlite/session/watch_sql.h"

/* --- a connection ---------------------------------------------------------- */

static const struct watch_sql our_sql = {
	.rewrite = pragma_rewrite,
	.run_pragma = schema_run_pragma,
	.before_prepare = schema_expect,
	.missing_table = schema_follow,
};

static int bring_schema(struct session *session, char **error)
{
	int rc = schema_attach(session, error);

	/* queryprof will not see the statement that names the schema, so there is no later opportunity. */
	if (schema_is_locked(rc)) {
		sqlite3_free(*error);
		*error = NULL;
		rc = schema_make_eponymous(session, error);
	}
	return rc;
}

/* If the host's calls can be hooked, this reads and writes none of the connection's databases: the
 * schema `system` comes with the first statement that names it or, if the host attached this
 * connection itself (`wants_tables`), one of its tables. Otherwise the schema comes now.
 * Idempotent. On failure the connection works as before, without the part that failed, and
 * `*error` has a message (sqlite3_malloc). */
static int attach_connection(sqlite3 *db, bool wants_tables, char **error)
{
	bool hooked = hooks_install(host_library()), is_new;
	struct session *session = session_bind(db, &is_new, error);
	int rc = session ? SQLITE_OK : SQLITE_ERROR;
	struct call quiet;

	watch_sql_set(&our_sql);
	if (session && is_new)
		rc = functions_register(session, error);
	if (session && is_new && !rc)
		rc = explain_analyze_register(session, error);
	if (session) {
		session->wants_tables |= wants_tables;
		session_watch(session);
	}
	/* queryprof's own statements do not count as queries of the host. */
	own_statements_begin_quiet(&quiet, __builtin_frame_address(0));
	if (!rc && is_new && wants_tables)
		functions_guard(session);
	if (!rc && !hooked)
		rc = bring_schema(session, error);
	own_statements_end_quiet(&quiet);
	if (session && is_new && !hooked)
		session_set_trace_callback(session);
	if (rc)
		counter_add(SAMPLER_SESSIONS_REFUSED, 1);
	return rc;
}

/* --- the extension --------------------------------------------------------- */

/* SQLite calls it for every connection opened after the first. It must not fail:
 * sqlite3_open() would. */
static int attach_later_connection(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	const struct host_library *library = host_find(api);
	struct call call;
	char *ignored = NULL;

	(void)error;
	if (library && process_running() && !opcode_library_learning()) {
		call_enter(&call, library, __builtin_frame_address(0));
		attach_connection(db, false, &ignored);
		sqlite3_free(ignored);
		/* Forget what may have failed: sqlite3_open() looks for it. */
		sqlite3_exec(db, "", NULL, NULL, NULL);
		call_leave(&call);
	}
	return SQLITE_OK;
}

static int attach(sqlite3 *db, char **error)
{
	int rc;

	auto_extensions_add_own((void (*)(void))attach_later_connection);
	host_enter_statics();
	rc = sqlite3_auto_extension((void (*)(void))attach_later_connection);
	host_leave_statics();
	return rc ? rc : attach_connection(db, true, error);
}

int sqlite3_queryprof_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	const struct host_library *library = host_adopt(api, error);
	struct call call;
	int rc;

	if (!library)
		return SQLITE_ERROR;
	/* A program that has queryprof linked may register it. */
	auto_extensions_add_own((void (*)(void))sqlite3_queryprof_init);
	if (qp_init(NULL)) {
		*error = api->mprintf("queryprof: %s", qp_error());
		return SQLITE_ERROR;
	}
	call_enter(&call, library, __builtin_frame_address(0));
	rc = attach(db, error);
	call_leave(&call);
	/* Signals may be on their way to the handler: never unloaded. */
	return rc ? rc : SQLITE_OK_LOAD_PERMANENTLY;
}

int sqlite3_queryprof_trace_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	return trace_file_functions_attach(db, error, api, NULL);
}

/* --- C -------------------------------------------------------------------- */

#define LOADER_ATTACH_NS (10 * NS_PER_S)

static const sqlite3_api_routines *offered;
/* This thread opens queryprof's own connection, for which the host's auto-extensions are called, too. */
static __thread bool is_fetching;

static int accept_routines(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	offered = api;
	return SQLITE_OK;
}

/* With loader_acquire(). The SQLite that the code at `caller` reaches by name: if there are
 * several libraries, or one and the program's own copy, that is the one that owns its connections. */
static void *open_library_of(const void *caller)
{
	Dl_info info;
	void *handle = NULL;

	if (dladdr(caller, &info) && info.dli_fname) {
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			handle = dlopen(NULL, RTLD_LAZY); /* the program itself */
	}
	if (handle && dlsym(handle, "sqlite3_open"))
		return handle;
	if (handle)
		dlclose(handle);
	handle = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD);
	return handle ? handle : dlopen(NULL, RTLD_LAZY);
}

/* SQLite hands its table of routines to extensions only: be one for a moment, on a
 * connection of queryprof's own. */
static const sqlite3_api_routines *fetch_api(const qp_sqlite *sqlite)
{
	LOCK_DEFINE(lock, LOCK_OFFER, .at_fork = LOCK_LEFT); /* SQLite may wait in there */
	const sqlite3_api_routines *api;
	sqlite3 *scratch = NULL;

	lock_acquire(&lock);
	offered = NULL;
	is_fetching = true;
	auto_extensions_add_own((void (*)(void))accept_routines);
	host_enter_statics();
	if (!sqlite->auto_extension((void (*)(void))accept_routines)) {
		sqlite->open(":memory:", &scratch);
		sqlite->close(scratch);
		sqlite->cancel_auto_extension((void (*)(void))accept_routines);
	}
	host_leave_statics();
	is_fetching = false;
	api = offered;
	lock_release(&lock);
	return api;
}

static bool has_all(const qp_sqlite *sqlite)
{
	return sqlite->open && sqlite->close && sqlite->auto_extension && sqlite->cancel_auto_extension;
}

static const sqlite3_api_routines *find_api(const void *caller)
{
	const sqlite3_api_routines *api;
	qp_sqlite sqlite = { 0 };
	void *library;

	/* With a limit, because a constructor of a library that is being loaded may wait for this thread. */
	if (!loader_acquire(LOADER_ATTACH_NS))
		return NULL;
	library = open_library_of(caller);
	if (library) {
		*(void **)&sqlite.open = dlsym(library, "sqlite3_open");
		*(void **)&sqlite.close = dlsym(library, "sqlite3_close");
		*(void **)&sqlite.auto_extension = dlsym(library, "sqlite3_auto_extension");
		*(void **)&sqlite.cancel_auto_extension = dlsym(library, "sqlite3_cancel_auto_extension");
	}
	loader_release();
	api = has_all(&sqlite) ? fetch_api(&sqlite) : NULL;
	/* Else the library stays. */
	if (library && loader_acquire(LOADER_ATTACH_NS)) {
		dlclose(library);
		loader_release();
	}
	return api;
}

/* `api` NULL: of the session that there is. */
static int attach_from_c(sqlite3 *db, const sqlite3_api_routines *api)
{
	const struct session *session = session_of(db);
	const struct host_library *library;
	struct call call;
	char *sentence = NULL;
	int rc;

	if (session)
		api = host_api(session->library);
	library = host_adopt(api, &sentence);
	if (library && (rc = qp_init(NULL)))
		return rc;
	call_enter(&call, library, __builtin_frame_address(0));
	rc = library ? attach(db, &sentence) : SQLITE_ERROR;
	call_leave(&call);
	if (!rc)
		return QP_OK;
	error_set(QP_SQLITE, "qp_attach: %s", sentence ? sentence : "SQLite refused");
	api->free(sentence);
	return QP_SQLITE;
}

int qp_attach(sqlite3 *db)
{
	const sqlite3_api_routines *api = NULL;

	if (!db)
		return error_set(QP_INVALID, "qp_attach: no connection");
	if (is_fetching)
		return QP_OK;
	if (!session_of(db) && !(api = find_api(__builtin_return_address(0))))
		return error_set(QP_SQLITE,
		                 "qp_attach: no SQLite was found by name; for a static copy, include "
		                 "sqlite3.h before queryprof.h, or call qp_attach_of()");
	return attach_from_c(db, api);
}

int qp_attach_of(sqlite3 *db, const qp_sqlite *sqlite)
{
	const sqlite3_api_routines *api = NULL;

	if (!db)
		return error_set(QP_INVALID, "qp_attach: no connection");
	if (!sqlite || sqlite->size < sizeof(*sqlite))
		return error_set(QP_INVALID, "qp_sqlite.size = %zu: set it to sizeof(qp_sqlite), %zu",
		                 sqlite ? sqlite->size : 0, sizeof(*sqlite));
	if (is_fetching)
		return QP_OK;
	if (!session_of(db) && !(api = fetch_api(sqlite)))
		return error_set(QP_SQLITE, "qp_attach: this SQLite does not load extensions");
	return attach_from_c(db, api);
}

int qp_trace(sqlite3 *db, unsigned mask, int (*callback)(unsigned, void *, void *, void *), void *context)
{
	struct session *session = db ? session_of(db) : NULL;
	struct call call;
	int rc = SQLITE_OK;

	if (!session)
		return error_set(QP_INVALID,
		                 "qp_trace: the connection is not attached, call qp_attach() first");
	call_enter(&call, session->library, __builtin_frame_address(0));
	if (session->has_trace_callback)
		trace_callback_set(session, callback ? mask : 0, callback, context);
	else
		rc = sqlite3_trace_v2(db, mask, callback, context);
	call_leave(&call);
	return rc ? error_set(QP_SQLITE, "qp_trace: SQLite refused") : QP_OK;
}

int qp_metrics(int (*each)(void *context, const qp_metric *metric), void *context)
{
	metrics_each(each, context);
	return QP_OK;
}
