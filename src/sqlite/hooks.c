#include "hooks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "got.h"
#include "pragma.h"
#include "queries.h"
#include "sampler/sampler.h"
#include "session.h"

/* The real functions of the library that is hooked. */
static struct {
	int (*step)(sqlite3_stmt *);
	int (*reset)(sqlite3_stmt *);
	int (*finalize)(sqlite3_stmt *);
	int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
	int (*prepare_v2)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
	int (*prepare_v3)(sqlite3 *, const char *, int, unsigned, sqlite3_stmt **, const char **);
	int (*create_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} real;

static int hook_step(sqlite3_stmt *stmt)
{
	struct query_step step;
	int rc;

	if (!queries_enter(&step, stmt))
		return real.step(stmt);
	rc = real.step(stmt);
	queries_leave(&step, rc);
	return rc;
}

static int hook_reset(sqlite3_stmt *stmt)
{
	return queries_reset(stmt, real.reset);
}

/* To finalize is to reset and to free. Reset first, so that what it undoes counts
 * for the query and the statement can still be asked. */
static int hook_finalize(sqlite3_stmt *stmt)
{
	int reset_rc = queries_end(stmt, real.reset);
	int rc = real.finalize(stmt);

	return reset_rc ? reset_rc : rc;
}

/* --- prepare: bare PRAGMAs of ours ---------------------------------------- */

/* Our PRAGMA under its full name; NULL for any other statement. `*tail` is where
 * the statement ends in the host's own text. */
static char *rewrite(sqlite3 *db, const char *sql, int bytes, const char **tail)
{
	char *text;

	if (!sql || session_suspended())
		return NULL;
	text = pragma_rewrite(sql, bytes, tail);
	if (text && !session_of(db)) {
		free(text);
		return NULL;
	}
	return text;
}

static int hook_prepare(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                        const char **tail)
{
	const char *end;
	char *text = rewrite(db, sql, bytes, &end);
	int rc = real.prepare(db, text ? text : sql, text ? -1 : bytes, stmt, text ? NULL : tail);

	if (text && tail)
		*tail = end;
	free(text);
	return rc;
}

static int hook_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt,
                           const char **tail)
{
	const char *end;
	char *text = rewrite(db, sql, bytes, &end);
	int rc = real.prepare_v2(db, text ? text : sql, text ? -1 : bytes, stmt, text ? NULL : tail);

	if (text && tail)
		*tail = end;
	free(text);
	return rc;
}

static int hook_prepare_v3(sqlite3 *db, const char *sql, int bytes, unsigned flags,
                           sqlite3_stmt **stmt, const char **tail)
{
	const char *end;
	char *text = rewrite(db, sql, bytes, &end);
	int rc = real.prepare_v3(db, text ? text : sql, text ? -1 : bytes, flags, stmt,
	                         text ? NULL : tail);

	if (text && tail)
		*tail = end;
	free(text);
	return rc;
}

/* --- the library's worker threads ----------------------------------------- */

struct worker {
	void *(*run)(void *);
	void *argument;
	struct query_tag tag;
};

static void *run_worker(void *context)
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

static int hook_create_thread(pthread_t *id, const pthread_attr_t *attributes,
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
	error = real.create_thread(id, attributes, run_worker, worker);
	if (error)
		free(worker);
	return error;
}

/* --- installing ----------------------------------------------------------- */

#define HOOKS 7
static struct got_hook hooks[HOOKS];
static int step_slots;

/* The address in the library that `api` belongs to whatever an earlier scan wrote
 * into its table. */
static void *library_function(const void *api, const char *name, void *routine)
{
	Dl_info info;
	void *handle, *found;

	if (!dladdr(api, &info) || !info.dli_fname)
		return routine;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return routine; /* the program itself: a static copy */
	found = dlsym(handle, name);
	dlclose(handle);
	return found ? found : routine;
}

static void fill_hooks(const sqlite3_api_routines *api)
{
	const struct {
		const char *name;
		void *routine, *replacement, **real;
		const void *only_in;
	} list[HOOKS] = {
		/* first: got_patch() counts its slots */
		{ "sqlite3_step", (void *)api->step, (void *)hook_step, (void **)&real.step, NULL },
		{ "sqlite3_reset", (void *)api->reset, (void *)hook_reset, (void **)&real.reset, NULL },
		{ "sqlite3_finalize", (void *)api->finalize, (void *)hook_finalize, (void **)&real.finalize, NULL },
		{ "sqlite3_prepare", (void *)api->prepare, (void *)hook_prepare, (void **)&real.prepare, NULL },
		{ "sqlite3_prepare_v2", (void *)api->prepare_v2, (void *)hook_prepare_v2, (void **)&real.prepare_v2, NULL },
		{ "sqlite3_prepare_v3", (void *)api->prepare_v3, (void *)hook_prepare_v3, (void **)&real.prepare_v3, NULL },
		{ "pthread_create", dlsym(RTLD_DEFAULT, "pthread_create"), (void *)hook_create_thread,
		  (void **)&real.create_thread, api },
	};

	for (int i = 0; i < HOOKS; i++) {
		void *function = list[i].only_in ? list[i].routine :
			library_function(api, list[i].name, list[i].routine);

		*list[i].real = function;
		hooks[i] = (struct got_hook){
			.symbol = list[i].name,
			.real = function,
			.replacement = list[i].replacement,
			.only_in = list[i].only_in,
		};
	}
}

bool hooks_install(const sqlite3_api_routines *api)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool installed, seen;
	bool result;

	pthread_mutex_lock(&lock);
	if (!installed)
		fill_hooks(api);
	if (!installed || got_stale()) {
		/* The table itself stays as it is: through it our own calls, and those of
		 * other extensions, reach SQLite. */
		const struct got_options options = {
			.library = api,
			.keep_start = api,
			.keep_end = api + 1,
		};
		struct got_found found = got_patch(hooks, HOOKS, &options);

		installed = true;
		step_slots = found.in_library + found.elsewhere;
		/* Without slots of its own, sqlite3_exec() would go by us. */
		seen = found.in_library && found.elsewhere;
	}
	result = seen;
	pthread_mutex_unlock(&lock);
	return result;
}

int hooks_step_slots(void)
{
	return __atomic_load_n(&step_slots, __ATOMIC_RELAXED);
}
