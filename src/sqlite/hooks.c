#include "hooks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"
#include "got.h"
#include "lookup.h"
#include "pragma.h"
#include "queries.h"
#include "schema.h"
#include "sampler/sampler.h"
#include "session.h"
#include "signals.h"
#include "waits.h"

/* The real functions of the library that is hooked. Ours are named so that a person
 * who meets them in a stack knows whose they are. */
static struct {
	int (*step)(sqlite3_stmt *);
	int (*reset)(sqlite3_stmt *);
	int (*finalize)(sqlite3_stmt *);
	int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
	int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
	int (*prepare_v2)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
	int (*prepare_v3)(sqlite3 *, const char *, int, unsigned, sqlite3_stmt **, const char **);
	int (*prepare16)(sqlite3 *, const void *, int, sqlite3_stmt **, const void **);
	int (*prepare16_v2)(sqlite3 *, const void *, int, sqlite3_stmt **, const void **);
	int (*prepare16_v3)(sqlite3 *, const void *, int, unsigned, sqlite3_stmt **, const void **);
	int (*close)(sqlite3 *);
	int (*close_v2)(sqlite3 *);
	int (*create_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} real;

static int queryprof_step(sqlite3_stmt *stmt)
{
	struct query_step step;
	int rc;

	if (queries_idle() || !queries_enter(&step, stmt, __builtin_frame_address(0)))
		return real.step(stmt);
	rc = real.step(stmt);
	queries_leave(&step, rc);
	return rc;
}

static int queryprof_reset(sqlite3_stmt *stmt)
{
	return queries_idle() ? real.reset(stmt) : queries_reset(stmt, real.reset);
}

/* To finalize is to reset and to free. Reset first, so that what it undoes counts
 * for the query and the statement can still be asked. */
static int queryprof_finalize(sqlite3_stmt *stmt)
{
	int reset_rc = queries_idle() ? SQLITE_OK : queries_end(stmt, real.reset);
	int rc;

	session_finalizing(stmt);
	rc = real.finalize(stmt);
	return reset_rc ? reset_rc : rc;
}

/* Virtual tables finalize their statements while their connection goes. */
static int close_connection(int (*close)(sqlite3 *), sqlite3 *db)
{
	int rc;

	queries_suspend();
	rc = close(db);
	queries_resume();
	return rc;
}

static int queryprof_close(sqlite3 *db)
{
	session_closing(db, false);
	return close_connection(real.close, db);
}

static int queryprof_close_v2(sqlite3 *db)
{
	session_closing(db, true);
	return close_connection(real.close_v2, db);
}


/* sqlite3_exec() frees its statements without sqlite3_finalize(). One that is done
 * has ended at its last step; one that the callback gave up ends here. */
struct exec_call {
	int (*callback)(void *, int, char **, char **);
	void *context;
};

static int on_exec_row(void *context, int count, char **values, char **names)
{
	const struct exec_call *call = context;
	sqlite3_stmt *stmt = queries_newest_row();
	int rc = call->callback(call->context, count, values, names);

	if (rc)
		queries_abandon(stmt);
	return rc;
}

static int queryprof_exec(sqlite3 *db, const char *sql,
                          int (*callback)(void *, int, char **, char **), void *context, char **error)
{
	struct exec_call call = { callback, context };

	return callback ? real.exec(db, sql, on_exec_row, &call, error) :
	                  real.exec(db, sql, NULL, context, error);
}

/* --- prepare -------------------------------------------------------------- */

struct prepare_call {
	sqlite3 *db;
	const void *sql;
	int bytes;
	unsigned flags;
	sqlite3_stmt **stmt;
	const void **tail;
	const char *text; /* `sql` if it is UTF-8 and ends in a zero */
};

/* The statement's text when it ends in a zero, as it mostly does. */
static const char *text_of(const char *sql, int bytes)
{
	return bytes < 0 || (bytes > 0 && sql && !sql[bytes - 1]) ? sql : NULL;
}

static int prepare_v1(const struct prepare_call *call)
{
	return real.prepare(call->db, call->sql, call->bytes, call->stmt, (const char **)call->tail);
}

static int prepare_v2(const struct prepare_call *call)
{
	return real.prepare_v2(call->db, call->sql, call->bytes, call->stmt, (const char **)call->tail);
}

static int prepare_v3(const struct prepare_call *call)
{
	return real.prepare_v3(call->db, call->sql, call->bytes, call->flags, call->stmt,
	                       (const char **)call->tail);
}

static int prepare16_v1(const struct prepare_call *call)
{
	return real.prepare16(call->db, call->sql, call->bytes, call->stmt, call->tail);
}

static int prepare16_v2(const struct prepare_call *call)
{
	return real.prepare16_v2(call->db, call->sql, call->bytes, call->stmt, call->tail);
}

static int prepare16_v3(const struct prepare_call *call)
{
	return real.prepare16_v3(call->db, call->sql, call->bytes, call->flags, call->stmt, call->tail);
}

static int prepare_as_query(int (*prepare)(const struct prepare_call *), const struct prepare_call *call)
{
	struct query_step step;
	int rc;

	queries_prepare(&step, call->db, call->text, __builtin_frame_address(0));
	rc = prepare(call);
	queries_prepared(&step, rc, rc ? NULL : *call->stmt);
	return rc;
}

/* A recorded connection knows none of our words. */
static struct session *session_that_asked(sqlite3 *db)
{
	struct session *session = session_of(db);

	return session && !session->recorded ? session : NULL;
}

/* Prepares; and if that fails for want of the `system` schema, brings it and
 * prepares again. */
static int prepare_followed(int (*prepare)(const struct prepare_call *), const struct prepare_call *call)
{
	int rc = prepare_as_query(prepare, call);
	struct session *session;

	if (rc != SQLITE_ERROR || !(session = session_that_asked(call->db)) || !schema_follow(session))
		return rc;
	return prepare_as_query(prepare, call);
}

/* The same for UTF-8 text, in which a PRAGMA of ours stands for a SELECT. */
static int prepare_text(int (*prepare)(const struct prepare_call *), const struct prepare_call *call)
{
	const char *end;
	char *text = call->sql ? pragma_rewrite(call->sql, call->bytes, &end) : NULL;
	struct prepare_call rewritten = *call;
	int rc;

	if (!text || !session_that_asked(call->db)) {
		free(text);
		return prepare_followed(prepare, call);
	}
	rewritten.sql = rewritten.text = text;
	rewritten.bytes = -1;
	rewritten.tail = NULL;
	rc = prepare_as_query(prepare, &rewritten);
	if (call->tail)
		*call->tail = end;
	free(text);
	return rc;
}

static int queryprof_prepare(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                             const char **tail)
{
	const struct prepare_call call = { db, sql, bytes, 0, stmt, (const void **)tail,
	                                   text_of(sql, bytes) };

	return prepare_text(prepare_v1, &call);
}

static int queryprof_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                                const char **tail)
{
	const struct prepare_call call = { db, sql, bytes, 0, stmt, (const void **)tail,
	                                   text_of(sql, bytes) };

	return prepare_text(prepare_v2, &call);
}

static int queryprof_prepare_v3(sqlite3 *db, const char *sql, int bytes, unsigned flags,
                                sqlite3_stmt **stmt, const char **tail)
{
	const struct prepare_call call = { db, sql, bytes, flags, stmt, (const void **)tail,
	                                   text_of(sql, bytes) };

	return prepare_text(prepare_v3, &call);
}

static int queryprof_prepare16(sqlite3 *db, const void *sql, int bytes, sqlite3_stmt **stmt,
                               const void **tail)
{
	const struct prepare_call call = { db, sql, bytes, 0, stmt, tail, NULL };

	return prepare_followed(prepare16_v1, &call);
}

static int queryprof_prepare16_v2(sqlite3 *db, const void *sql, int bytes, sqlite3_stmt **stmt,
                                  const void **tail)
{
	const struct prepare_call call = { db, sql, bytes, 0, stmt, tail, NULL };

	return prepare_followed(prepare16_v2, &call);
}

static int queryprof_prepare16_v3(sqlite3 *db, const void *sql, int bytes, unsigned flags,
                                  sqlite3_stmt **stmt, const void **tail)
{
	const struct prepare_call call = { db, sql, bytes, flags, stmt, tail, NULL };

	return prepare_followed(prepare16_v3, &call);
}

/* --- the library's worker threads ----------------------------------------- */

struct worker {
	void *(*run)(void *);
	void *argument;
	struct query_tag tag;
};

static void *queryprof_worker(void *context)
{
	struct worker worker = *(struct worker *)context;
	struct thread *thread = sampler_thread();
	void *result;

	free(context);
	if (thread)
		sampler_push(thread, &worker.tag);
	result = worker.run(worker.argument);
	if (thread)
		sampler_pop(thread);
	return result;
}

static int queryprof_create_thread(pthread_t *id, const pthread_attr_t *attributes,
                              void *(*run)(void *), void *argument)
{
	struct thread *thread = thread_current;
	const struct query_tag *tag = thread ? sampler_top(thread) : NULL;
	struct worker *worker = tag ? malloc(sizeof *worker) : NULL;
	int error;

	if (!worker)
		return real.create_thread(id, attributes, run, argument);
	*worker = (struct worker){ .run = run, .argument = argument, .tag = *tag };
	/* The worker works while its maker holds the connection's mutex. */
	worker->tag.mutex_owner = NULL;
	worker->tag.frame = 0; /* of another stack */
	error = real.create_thread(id, attributes, queryprof_worker, worker);
	if (error)
		free(worker);
	return error;
}

/* --- installing ----------------------------------------------------------- */

#define HOOKS_MAX (14 + ENDS_HOOKS_MAX + SIGNALS_HOOKS_MAX + WAITS_HOOKS_MAX)
static struct got_hook hooks[HOOKS_MAX];
static int hooks_count;
static const void *library; /* an address in the SQLite library */

/* The address in the library whatever an earlier scan wrote into its table. */
static void *library_function(const char *name, void *routine)
{
	Dl_info info;
	void *handle, *found;

	if (!dladdr(library, &info) || !info.dli_fname)
		return routine;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return routine; /* the program itself: a static copy */
	found = dlsym(handle, name);
	dlclose(handle);
	return found ? found : routine;
}

static void add_hook(const char *name, void *routine, void *replacement, void **to)
{
	*to = library_function(name, routine);
	hooks[hooks_count++] = (struct got_hook){ .symbol = name, .real = *to, .replacement = replacement };
}

static void *replacement_of(const char *symbol, const void *function)
{
	for (int i = 0; i < hooks_count; i++)
		if (hooks[i].real == function && !strcmp(hooks[i].symbol, symbol))
			return hooks[i].replacement;
	return NULL;
}

static void fill_hooks(const sqlite3_api_routines *api)
{
	hooks_count = 0;
#define HOOK(name) \
	add_hook("sqlite3_" #name, (void *)api->name, (void *)queryprof_##name, (void **)&real.name)
	HOOK(step); /* first: got_patch() counts its slots */
	HOOK(reset);
	HOOK(finalize);
	HOOK(exec);
	HOOK(prepare);
	HOOK(prepare_v2);
	HOOK(prepare16);
	HOOK(prepare16_v2);
	HOOK(prepare_v3); /* from 3.20, the oldest that we work with */
	HOOK(prepare16_v3);
	HOOK(close);
	HOOK(close_v2);
#undef HOOK
	*(void **)&real.create_thread = dlsym(RTLD_DEFAULT, "pthread_create");
	hooks[hooks_count++] = (struct got_hook){
		.symbol = "pthread_create",
		.real = (void *)real.create_thread,
		.replacement = (void *)queryprof_create_thread,
		.only_in = library,
	};
	hooks_count += ends_hooks(&hooks[hooks_count]);
	hooks_count += signals_hooks(&hooks[hooks_count]);
	hooks_count += waits_hooks(&hooks[hooks_count]);
	hooks_count += lookup_hook(&hooks[hooks_count], replacement_of);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. Whether the host's steps can be seen. */
static bool patch(const sqlite3_api_routines *api)
{
	static bool installed, seen;

	if (!library)
		library = api;
	if (!installed)
		fill_hooks(api);
	/* Again, for who brings an object meanwhile does not wait; but not for ever, when
	 * there is no memory to look with. */
	for (int i = 0; i < 4 && (!installed || got_stale()); i++) {
		/* The table itself stays as it is: through it our own calls, and those of
		 * other extensions, reach SQLite. */
		const struct got_options options = {
			.library = library,
			.keep_start = api,
			.keep_end = api + 1,
		};
		struct got_found found = got_patch(hooks, hooks_count, &options);

		installed = true;
		/* Without slots of its own, sqlite3_exec() would go by us. */
		seen = found.in_library && found.elsewhere;
	}
	return seen;
}

bool hooks_install(const sqlite3_api_routines *api)
{
	bool result;

	pthread_mutex_lock(&lock);
	result = patch(api);
	pthread_mutex_unlock(&lock);
	return result;
}

void hooks_record(const void *address)
{
	/* Another thread is at it: for the extension, which was loaded meanwhile. */
	if (pthread_mutex_trylock(&lock))
		return;
	if (!library)
		library = address;
	patch(sqlite3_api);
	pthread_mutex_unlock(&lock);
}

void hooks_follow(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	patch(sqlite3_api);
	pthread_mutex_unlock(&lock);
}

/* Whatever was left half done is done again or can stay: each slot is one store. Not held
 * over the fork: who holds it may be waiting for the loader, and the loader for us. */
void hooks_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
