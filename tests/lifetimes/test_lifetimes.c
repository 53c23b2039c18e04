/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of lifetimes: connections, statements, blobs, backups, sessions, snapshots, copies of values, and
 * the contexts of functions with their attached data. They are used and ended in every order that SQLite
 * allows, up to some length. Each sequence runs once in a process with SQLite alone, which gives the right
 * result, and once with queryprof. The results must be the same. Then several threads do the same at the same
 * time, where only the end counts. Debian's SQLite has no snapshots. with_snapshots runs this with a SQLite
 * that has them, but neither R-Tree nor FTS, because their virtual tables keep statements of their own on the
 * host's connection.
 *
 *   test_lifetimes loaded|recorded [--long]
 *
 * With LIFETIMES_VERBOSE set, each sequence is printed before it runs, so the last one crashed.
 *
 * A connection closed by sqlite3_close_v2() while objects depend on it becomes a zombie, which ends with the
 * last of these objects. A blob whose row is gone (after a failed sqlite3_blob_reopen) does not hold its
 * connection. SQLite forbids to close the connection then. A zombie's last blob must not fail in this way,
 * because SQLite uses the connection afterwards. A session must be deleted before its connection is closed. A
 * snapshot and a copy of a value belong to no handle.
 */
#define SQLITE_ENABLE_SESSION
#define SQLITE_ENABLE_PREUPDATE_HOOK
#include "../watch/host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what there is -------------------------------------------------------------------- */

enum { FIRST, SECOND, CONNECTIONS };
#define HANDLES 3

enum kind { NONE, ROWS, FAILS, WRITES, CALLS, SUMS, BOXES, WORDS, BLOB, BACKUP, SESSION, VALUE, SNAPSHOT };

/* The objects at the beginning of a sequence. The handles belong to the first connection, except for
 * `on_second`. */
static const struct world {
	const char *name;
	enum kind handles[HANDLES];
	int on_second; /* this handle belongs to the second connection, 0: none does */
	int depth, depth_long;
} worlds[] = {
	{ "a statement", { ROWS }, 0, 4, 7 },
	{ "a statement that writes", { WRITES }, 0, 3, 6 },
	{ "two statements", { ROWS, FAILS }, 0, 3, 5 },
	{ "a blob", { BLOB }, 0, 4, 6 },
	{ "two blobs", { BLOB, BLOB }, 0, 2, 4 },
	{ "a statement and a blob", { ROWS, BLOB }, 0, 3, 5 },
	{ "a backup", { BACKUP }, 0, 4, 6 },
	{ "a backup and a statement of its source", { BACKUP, ROWS }, 0, 3, 5 },
	{ "a backup and a statement of its destination", { BACKUP, ROWS }, 1, 3, 5 },
	{ "a backup and a blob", { BACKUP, BLOB }, 0, 3, 4 },
	{ "a function's context", { CALLS }, 0, 3, 6 },
	{ "contexts of two statements", { CALLS, SUMS }, 0, 2, 5 },
	{ "a statement of an R-Tree", { BOXES }, 0, 3, 5 },
	{ "a statement of an R-Tree and one of a text index", { BOXES, WORDS }, 0, 2, 4 },
	{ "a statement of a text index and a blob", { WORDS, BLOB }, 0, 2, 4 },
	{ "a session", { SESSION, WRITES }, 0, 3, 5 },
	{ "a value", { VALUE, CALLS }, 0, 2, 5 },
	{ "a snapshot", { SNAPSHOT, ROWS }, 0, 3, 5 },
	{ "two snapshots", { SNAPSHOT, SNAPSHOT }, 0, 3, 4 },
};
#define WORLDS (sizeof(worlds) / sizeof(*worlds))

enum operation {
	STEP,   /* a statement or a backup; reads of a blob, a value or a snapshot; a session's changes */
	RESET,  /* a statement; moves a blob to another row; turns a session off or on; copies a value;
	         * compares a snapshot with the current one */
	SPOIL,  /* moves a blob to a missing row */
	END,    /* finalizes, closes, finishes */
	CLOSE,  /* a connection, which stays open if handles are left */
	ZOMBIE, /* sqlite3_close_v2() */
	CHANGE, /* the schema, by another statement */
	MISUSE, /* prepares a statement on a zombie, which SQLite refuses */
	OPERATIONS,
};

static const char *const operation_names[OPERATIONS] = { "step",  "reset",    "spoil",  "end",
	                                                 "close", "close_v2", "change", "misuse" };

struct action {
	enum operation operation;
	int on; /* the handle, or the connection */
};

/* The remaining handles, as far as they determine the possible steps. */
struct left {
	bool handles[HANDLES], spoilt[HANDLES];
	bool open[CONNECTIONS];
};

static int connection_of(const struct world *world, int handle)
{
	return world->on_second && world->on_second == handle ? SECOND : FIRST;
}

/* Without a backup, the second connection is not used. */
static bool is_used(const struct world *world, int connection)
{
	bool used = connection == FIRST;

	for (int i = 0; i < HANDLES; i++)
		used |= world->handles[i] == BACKUP;
	return used;
}

/* Whether something holds the connection open. */
static bool is_busy(const struct world *world, const struct left *left, int connection)
{
	for (int i = 0; i < HANDLES; i++)
		if (left->handles[i] && world->handles[i] < SESSION && connection_of(world, i) == connection)
			return true;
	return false;
}

static bool has_spoilt(const struct left *left)
{
	for (int i = 0; i < HANDLES; i++)
		if (left->handles[i] && left->spoilt[i])
			return true;
	return false;
}

static bool has(const struct world *world, const struct left *left, enum kind kind)
{
	for (int i = 0; i < HANDLES; i++)
		if (left->handles[i] && world->handles[i] == kind)
			return true;
	return false;
}

static bool is_allowed(const struct world *world, const struct left *left, struct action action)
{
	enum kind kind;

	if (action.operation == MISUSE)
		return action.on < CONNECTIONS && !left->open[action.on] && is_busy(world, left, action.on) &&
		       !has_spoilt(left);
	if (action.operation >= CLOSE) {
		if (action.on >= CONNECTIONS || !left->open[action.on] || !is_used(world, action.on))
			return false;
		if (action.operation == CHANGE)
			return action.on == FIRST;
		if (action.on == FIRST)
			return !has_spoilt(left) && !has(world, left, SESSION);
		/* The destination must exist until the backup is finished. It may only become a zombie. */
		return !has(world, left, BACKUP) ||
		       (action.operation == ZOMBIE && is_busy(world, left, SECOND));
	}
	if (action.on >= HANDLES || !left->handles[action.on])
		return false;
	kind = world->handles[action.on];
	if (kind == BACKUP)
		return action.operation == STEP || action.operation == END;
	if (kind == BLOB)
		return action.operation != SPOIL || (left->open[FIRST] && !left->spoilt[action.on]);
	if (kind == SNAPSHOT && action.operation != END)
		return left->open[FIRST] && action.operation != SPOIL;
	/* During a backup, the destination must not be used. */
	if (connection_of(world, action.on) == SECOND && has(world, left, BACKUP))
		return action.operation == END && left->open[SECOND];
	return action.operation != SPOIL;
}

static void apply(const struct world *world, struct left *left, struct action action)
{
	switch (action.operation) {
	case END: left->handles[action.on] = false; break;
	case SPOIL: left->spoilt[action.on] = true; break;
	case CLOSE: left->open[action.on] &= is_busy(world, left, action.on); break;
	case ZOMBIE: left->open[action.on] = false; break;
	default: break;
	}
}

/* --- one sequence ------------------------------------------------------------------------ */

struct objects {
	sqlite3 *connections[CONNECTIONS];
	void *handles[HANDLES];
	int changes;
	uint64_t result;
};

static void note(struct objects *objects, int64_t value)
{
	objects->result = (objects->result ^ (uint64_t)value) * 0x100000001B3ull;
}

/* --- what functions get ------------------------------------------------------------------- */

/* The result includes the destructors' calls and their order. One thread at a time uses it. */
static struct objects *acting;

static void note_acting(int64_t value)
{
	if (acting)
		note(acting, value);
}

static void destroy(void *number)
{
	note_acting((int64_t)(intptr_t)number);
}

/* Attaches data to its first argument, queries its own connection, and returns memory with a destructor. */
static void call(sqlite3_context *context, int count, sqlite3_value **values)
{
	sqlite3 *db = sqlite3_context_db_handle(context);
	sqlite3_stmt *stmt = NULL;

	(void)count;
	/* A zombie refuses this. */
	note_acting(sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &stmt, NULL));
	if (!sqlite3_get_auxdata(context, 0))
		sqlite3_set_auxdata(context, 0, (void *)2, destroy);
	note_acting(stmt ? sqlite3_step(stmt) : 0);
	if (sqlite3_value_bytes(values[1]) == 10)
		sqlite3_result_error(context, "ten", -1);
	else
		sqlite3_result_blob(context, stmt ? "blob" : "none", 4, destroy);
	sqlite3_finalize(stmt);
}

/* Belongs to an aggregate, which some sequences abandon before its end. */
static void sum_step(sqlite3_context *context, int count, sqlite3_value **values)
{
	int64_t *sum = sqlite3_aggregate_context(context, sizeof(*sum));

	(void)count;
	*sum += sqlite3_value_bytes(values[0]);
}

static void sum_final(sqlite3_context *context)
{
	const int64_t *sum = sqlite3_aggregate_context(context, 0);

	sqlite3_result_int64(context, sum ? *sum : -1);
}

/* All have the same data, because a closed connection destroys them in the order of a hash table, which may
 * also contain functions of the library. */
static void add_functions(sqlite3 *db)
{
	assert_int_equal(
		sqlite3_create_function_v2(db, "call", 2, SQLITE_UTF8, (void *)3, call, NULL, NULL, destroy),
		0);
	assert_int_equal(sqlite3_create_function_v2(db, "bytes", 1, SQLITE_UTF8, (void *)3, NULL, sum_step,
	                                            sum_final, destroy),
	                 0);
}

static sqlite3_value *copy_of_value(sqlite3 *db)
{
	sqlite3_stmt *stmt = host_prepare(db, "SELECT 'a text of its own'");
	sqlite3_value *copy;

	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	copy = sqlite3_value_dup(sqlite3_column_value(stmt, 0));
	sqlite3_finalize(stmt);
	return copy;
}

static void *make_session(sqlite3 *db)
{
	sqlite3_session *session;

	assert_int_equal(sqlite3session_create(db, "main", &session), SQLITE_OK);
	assert_int_equal(sqlite3session_attach(session, NULL), SQLITE_OK);
	return session;
}

/* Functions that Debian's SQLite lacks. NULL: this SQLite lacks them, too. */
static struct {
	__typeof__(&sqlite3_snapshot_get) get;
	__typeof__(&sqlite3_snapshot_open) open;
	__typeof__(&sqlite3_snapshot_cmp) cmp;
	__typeof__(&sqlite3_snapshot_free) free;
} snapshots;

static void find_snapshots(void)
{
	*(void **)&snapshots.get = dlsym(RTLD_DEFAULT, "sqlite3_snapshot_get");
	*(void **)&snapshots.open = dlsym(RTLD_DEFAULT, "sqlite3_snapshot_open");
	*(void **)&snapshots.cmp = dlsym(RTLD_DEFAULT, "sqlite3_snapshot_cmp");
	*(void **)&snapshots.free = dlsym(RTLD_DEFAULT, "sqlite3_snapshot_free");
}

/* The snapshot of a reading transaction. Returns NULL and notes SQLite's code if a statement of the
 * connection is in another transaction. */
static sqlite3_snapshot *make_snapshot(struct objects *objects, sqlite3 *db)
{
	sqlite3_snapshot *snapshot = NULL;

	note(objects, sqlite3_exec(db, "BEGIN; SELECT count(*) FROM t", NULL, NULL, NULL));
	note(objects, snapshots.get(db, "main", &snapshot));
	note(objects, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
	return snapshot;
}

static void read_snapshot(struct objects *objects, sqlite3 *db, sqlite3_snapshot *snapshot)
{
	note(objects, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
	note(objects, snapshots.open(db, "main", snapshot));
	note(objects, host_int(db, "SELECT count(*) FROM sqlite_schema"));
	note(objects, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
}

static void compare_snapshot(struct objects *objects, sqlite3 *db, sqlite3_snapshot *snapshot)
{
	sqlite3_snapshot *now = make_snapshot(objects, db);

	if (now) {
		note(objects, snapshots.cmp(snapshot, now));
		snapshots.free(now);
	}
}

/* --- handles ------------------------------------------------------------------------------ */

static const char *const texts[] = {
	[ROWS] = "SELECT length(x) FROM t",
	[FAILS] = "SELECT abs(-9223372036854775807 - (rowid = 2)) FROM t",
	[WRITES] = "UPDATE t SET x = zeroblob(9) RETURNING rowid",
	[CALLS] = "SELECT call('kept', x) FROM t",
	[SUMS] = "SELECT bytes(x) FROM t GROUP BY rowid",
	[BOXES] = "SELECT id FROM r WHERE a > 0",
	[WORDS] = "SELECT rowid FROM f WHERE f MATCH 'a'",
};

/* The tables that handles of a kind need. */
static const char *const scripts[] = {
	[BOXES] = "CREATE VIRTUAL TABLE r USING rtree(id, a, b); INSERT INTO r VALUES (1, 1, 2), (2, 2, 3)",
	[WORDS] = "CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('a'), ('a b'), ('b')",
};

static void make_tables(sqlite3 *db, const enum kind kinds[HANDLES])
{
	host_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(8)), (zeroblob(9)), (zeroblob(10))");
	for (int i = 0; i < HANDLES; i++)
		if (kinds[i] == BOXES || kinds[i] == WORDS)
			host_exec(db, scripts[kinds[i]]);
}

static bool can_have(const enum kind kinds[HANDLES])
{
	for (int i = 0; i < HANDLES; i++)
		if ((kinds[i] == SNAPSHOT && !snapshots.get) ||
		    (kinds[i] == BOXES && !sqlite3_compileoption_used("ENABLE_RTREE")) ||
		    (kinds[i] == WORDS && !sqlite3_compileoption_used("ENABLE_FTS5")))
			return false;
	return true;
}

static void *make_handle(struct objects *objects, enum kind kind, int connection)
{
	sqlite3 *db = objects->connections[connection];
	sqlite3_blob *blob;

	switch (kind) {
	case NONE: return NULL;
	case BLOB:
		assert_int_equal(sqlite3_blob_open(db, "main", "t", "x", 1, 0, &blob), SQLITE_OK);
		return blob;
	case SESSION: return make_session(db);
	case VALUE: return copy_of_value(db);
	case SNAPSHOT: return make_snapshot(objects, db);
	case BACKUP: return sqlite3_backup_init(objects->connections[SECOND], "main", db, "main");
	default: return host_prepare(db, texts[kind]);
	}
}

/* Only a file with a write-ahead log has snapshots. */
static sqlite3 *open_first(const struct world *world)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char path[256];
	sqlite3 *db;

	if (world->handles[0] != SNAPSHOT)
		return host_open("");
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		snprintf(path, sizeof(path), "%s/snapshots%s", host_directory(), suffixes[i]);
		unlink(path);
	}
	db = host_open("snapshots");
	host_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
	return db;
}

static void make_objects(const struct world *world, struct objects *objects, struct left *left)
{
	*left = (struct left){ .open = { true, true } };
	*objects = (struct objects){ .result = 0xCBF29CE484222325ull };
	for (int i = 0; i < CONNECTIONS; i++) {
		objects->connections[i] = i == FIRST ? open_first(world) : host_open("");
		add_functions(objects->connections[i]);
		make_tables(objects->connections[i], world->handles);
	}
	/* The backup is made last, because its destination must not be used afterwards. */
	for (int i = HANDLES; i-- > 0;) {
		objects->handles[i] = make_handle(objects, world->handles[i], connection_of(world, i));
		left->handles[i] = objects->handles[i] != NULL;
	}
}

static void step(struct objects *objects, enum kind kind, void *handle)
{
	char byte = 0;
	void *changes;
	int rc, size;

	if (kind == SESSION) {
		note(objects, sqlite3session_isempty(handle));
		note(objects, sqlite3session_changeset(handle, &size, &changes));
		note(objects, size);
		sqlite3_free(changes);
	} else if (kind == VALUE) {
		note(objects, sqlite3_value_bytes(handle) + sqlite3_value_text(handle)[0]);
	} else if (kind == SNAPSHOT) {
		read_snapshot(objects, objects->connections[FIRST], handle);
	} else if (kind == BLOB) {
		note(objects, sqlite3_blob_read(handle, &byte, 1, 3));
	} else if (kind == BACKUP) {
		note(objects, sqlite3_backup_step(handle, 1));
	} else {
		rc = sqlite3_step(handle);
		note(objects, rc);
		if (rc == SQLITE_ROW)
			note(objects, sqlite3_column_int(handle, 0));
		else
			note(objects, (int64_t)strlen(sqlite3_errmsg(sqlite3_db_handle(handle))));
	}
}

static void reset(struct objects *objects, enum kind kind, void *handle)
{
	sqlite3_value *copy;

	if (kind == SESSION) {
		note(objects, sqlite3session_enable(handle, !sqlite3session_enable(handle, -1)));
	} else if (kind == VALUE) {
		copy = sqlite3_value_dup(handle);
		note(objects, sqlite3_value_bytes(copy));
		sqlite3_value_free(copy);
	} else if (kind == SNAPSHOT) {
		compare_snapshot(objects, objects->connections[FIRST], handle);
	} else {
		note(objects, kind == BLOB ? sqlite3_blob_reopen(handle, 2) : sqlite3_reset(handle));
	}
}

static void end(struct objects *objects, enum kind kind, void *handle)
{
	if (kind == SESSION)
		sqlite3session_delete(handle);
	else if (kind == VALUE)
		sqlite3_value_free(handle);
	else if (kind == SNAPSHOT)
		snapshots.free(handle);
	else if (kind == BLOB)
		note(objects, sqlite3_blob_close(handle));
	else if (kind == BACKUP)
		note(objects, sqlite3_backup_finish(handle));
	else
		note(objects, sqlite3_finalize(handle));
}

static void act(const struct world *world, struct objects *objects, struct action action)
{
	enum kind kind = action.operation < CLOSE ? world->handles[action.on] : NONE;
	void *handle = action.operation < CLOSE ? objects->handles[action.on] : NULL;
	sqlite3_stmt *stmt;
	char sql[64];

	switch (action.operation) {
	case STEP: step(objects, kind, handle); break;
	case RESET: reset(objects, kind, handle); break;
	case SPOIL: note(objects, sqlite3_blob_reopen(handle, 99)); break;
	case END: end(objects, kind, handle); break;
	case CLOSE: note(objects, sqlite3_close(objects->connections[action.on])); break;
	case ZOMBIE: note(objects, sqlite3_close_v2(objects->connections[action.on])); break;
	case MISUSE:
		note(objects,
		     sqlite3_prepare_v2(objects->connections[action.on], "SELECT 1", -1, &stmt, NULL));
		break;
	default:
		snprintf(sql, sizeof(sql), "CREATE TABLE t%d(x)", objects->changes++);
		note(objects, sqlite3_exec(objects->connections[FIRST], sql, NULL, NULL, NULL));
	}
}

/* --- alternately on two threads ------------------------------------------------------------------ */

static struct hand_over {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct world *world;
	struct objects *objects;
	struct action action;
	bool is_wanted;
} hand_over = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *act_for_other(void *context)
{
	pthread_mutex_lock(&hand_over.lock);
	for (;;) {
		while (!hand_over.is_wanted)
			pthread_cond_wait(&hand_over.changed, &hand_over.lock);
		act(hand_over.world, hand_over.objects, hand_over.action);
		hand_over.is_wanted = false;
		pthread_cond_signal(&hand_over.changed);
	}
	return context;
}

static void act_elsewhere(const struct world *world, struct objects *objects, struct action action)
{
	static bool has_thread;
	pthread_t thread;

	if (!has_thread)
		assert_int_equal(pthread_create(&thread, NULL, act_for_other, NULL), 0);
	has_thread = true;
	pthread_mutex_lock(&hand_over.lock);
	hand_over.world = world;
	hand_over.objects = objects;
	hand_over.action = action;
	hand_over.is_wanted = true;
	pthread_cond_signal(&hand_over.changed);
	while (hand_over.is_wanted)
		pthread_cond_wait(&hand_over.changed, &hand_over.lock);
	pthread_mutex_unlock(&hand_over.lock);
}

/* --- all sequences ------------------------------------------------------------------------- */

#define LONGEST 16

struct sequence {
	const struct world *world;
	struct action actions[LONGEST];
	int length;
	bool in_turns; /* every second action on another thread */
};

static void perform(const struct sequence *sequence, struct objects *objects, struct left *left, int at,
                    struct action action)
{
	if (sequence->in_turns && at % 2)
		act_elsewhere(sequence->world, objects, action);
	else
		act(sequence->world, objects, action);
	apply(sequence->world, left, action);
}

/* Ends the remaining handles, in one order or the other, then the connections. */
static uint64_t run(const struct sequence *sequence, bool forward)
{
	struct objects objects;
	struct left left;
	int at = 0;

	acting = &objects;
	make_objects(sequence->world, &objects, &left);
	for (; at < sequence->length; at++)
		perform(sequence, &objects, &left, at, sequence->actions[at]);
	for (int i = 0; i < 2 * HANDLES; i++) {
		struct action action = { END, forward ? i % HANDLES : HANDLES - 1 - i % HANDLES };

		if (is_allowed(sequence->world, &left, action))
			perform(sequence, &objects, &left, at++, action);
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (left.open[i])
			perform(sequence, &objects, &left, at++, (struct action){ CLOSE, i });
	acting = NULL;
	return objects.result;
}

static struct results {
	uint64_t *of; /* shared with the process with SQLite alone */
	size_t count, room;
	bool is_model;
	int differences;
} results;

static void print_sequence(const struct sequence *sequence, bool forward)
{
	printf("%s%s, then %s:", sequence->world->name, sequence->in_turns ? ", on two threads" : "",
	       forward ? "the first first" : "the last first");
	for (int i = 0; i < sequence->length; i++)
		printf(" %s %d", operation_names[sequence->actions[i].operation], sequence->actions[i].on);
	printf("\n");
}

static void take_result(const struct sequence *sequence, bool forward)
{
	static bool is_verbose, is_known;
	int64_t sessions;
	uint64_t result;

	if (!is_known)
		is_verbose = getenv("LIFETIMES_VERBOSE") != NULL;
	is_known = true;
	if (is_verbose) {
		print_sequence(sequence, forward);
		fflush(stdout);
	}
	sessions = host_metric("sessions");
	result = run(sequence, forward);
	/* Compares them here, because a later connection at the same address might adopt a remaining
	 * session. */
	if (host_metric("sessions") != sessions) {
		printf("a session is left: ");
		print_sequence(sequence, forward);
		results.differences++;
	}
	assert_true(results.count < results.room);
	if (results.is_model) {
		results.of[results.count] = result;
	} else if (results.of[results.count] != result) {
		print_sequence(sequence, forward);
		results.differences++;
	}
	results.count++;
}

static void extend(struct sequence *sequence, const struct left *left, int depth)
{
	take_result(sequence, true);
	take_result(sequence, false);
	for (int operation = 0; operation < OPERATIONS && depth > 0; operation++) {
		for (int on = 0; on < HANDLES; on++) {
			struct action action = { (enum operation)operation, on };
			struct left then = *left;

			if (!is_allowed(sequence->world, left, action))
				continue;
			apply(sequence->world, &then, action);
			sequence->actions[sequence->length++] = action;
			extend(sequence, &then, depth - 1);
			sequence->length--;
		}
	}
}

/* Fewer actions and rounds under AddressSanitizer, where each takes much longer. */
#ifdef __SANITIZE_ADDRESS__
#define SHORTER 1
#define ROUNDS 100
#else
#define SHORTER 0
#define ROUNDS 400
#endif
#define ROUNDS_LONG 5000

static int depth_of(const struct world *world, bool is_long)
{
	int depth = (is_long ? world->depth_long : world->depth) - SHORTER;

	return depth < 2 ? 2 : depth;
}

static void run_worlds(bool is_long)
{
	for (size_t i = 0; i < WORLDS; i++) {
		if (!can_have(worlds[i].handles))
			continue;
		for (int in_turns = 0; in_turns < 2; in_turns++) {
			struct sequence sequence = { .world = &worlds[i], .in_turns = in_turns };
			struct left left = { .open = { true, true } };
			size_t before = results.count;

			for (int j = 0; j < HANDLES; j++)
				left.handles[j] = worlds[i].handles[j] != NONE;
			extend(&sequence, &left, depth_of(&worlds[i], is_long) - in_turns);
			if (!results.is_model)
				printf("%s%s: %zu sequences\n", worlds[i].name,
				       in_turns ? ", on two threads" : "", results.count - before);
		}
	}
}

/* Runs all sequences in a child with SQLite alone. */
static void run_model(bool is_long)
{
	int status = -1;
	pid_t child;

	results.room = is_long ? 8u << 20 : 1u << 20;
	results.of = mmap(NULL, results.room * sizeof(*results.of), PROT_READ | PROT_WRITE,
	                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	child = fork();
	if (!child) {
		results.is_model = true;
		host_begin("alone");
		run_worlds(is_long);
		exit(0);
	}
	waitpid(child, &status, 0);
	if (status) {
		fprintf(stderr, "SQLite alone ended with status 0x%x\n", status);
		exit(2);
	}
}

static bool is_long;

static void test_sequences(void **state)
{
	(void)state;
	run_worlds(is_long);
	assert_int_equal(results.differences, 0);
}

/* --- several threads at the same time ------------------------------------------------------------- */

#define THREADS 3

/* One set a round. There is no write next to a blob, because it would expire the blob, which then does not
 * hold its zombie. */
static const enum kind mixed[][HANDLES] = {
	{ ROWS, BLOB, FAILS },
	{ WRITES, CALLS, SUMS },
	{ VALUE, CALLS, ROWS },
	{ BOXES, WORDS, FAILS },
};
#define MIXED (sizeof(mixed) / sizeof(*mixed))

static struct {
	pthread_barrier_t begin;
	sqlite3 *db;
	const enum kind *kinds;
	void *handles[THREADS][HANDLES];
	unsigned seed;
} at_once;

static void *use_and_end(void *context)
{
	int thread = (int)(intptr_t)context;
	unsigned seed = at_once.seed * 31 + (unsigned)thread;
	bool is_left[HANDLES] = { true, true, true };
	struct objects ignored = { .result = 0 };

	pthread_barrier_wait(&at_once.begin);
	for (int left = HANDLES; left;) {
		int handle = rand_r(&seed) % HANDLES;
		enum kind kind = at_once.kinds[handle];
		void *it = at_once.handles[thread][handle];

		if (!is_left[handle])
			continue;
		switch (rand_r(&seed) % 4) {
		case 0:
			end(&ignored, kind, it);
			is_left[handle] = false;
			left--;
			break;
		case 1: reset(&ignored, kind, it); break;
		default:
			if (kind == BLOB || kind == VALUE)
				step(&ignored, kind, it);
			else
				sqlite3_step(it); /* its message may be of another thread */
		}
	}
	return NULL;
}

static void test_threads(void **state)
{
	int64_t sessions = host_metric("sessions");
	int rounds = is_long ? ROUNDS_LONG : ROUNDS;

	(void)state;
	pthread_barrier_init(&at_once.begin, NULL, THREADS + 1);
	for (int round = 0; round < rounds; round++) {
		pthread_t threads[THREADS];
		struct objects objects = { .result = 0 };

		at_once.kinds = mixed[(size_t)round % MIXED];
		if (!can_have(at_once.kinds))
			continue;
		at_once.seed = (unsigned)round;
		objects.connections[FIRST] = at_once.db = host_open("");
		add_functions(at_once.db);
		make_tables(at_once.db, at_once.kinds);
		for (int i = 0; i < THREADS; i++) {
			for (int j = 0; j < HANDLES; j++)
				at_once.handles[i][j] = make_handle(&objects, at_once.kinds[j], FIRST);
			assert_int_equal(pthread_create(&threads[i], NULL, use_and_end, (void *)(intptr_t)i),
			                 0);
		}
		/* The connection becomes a zombie at some moment. */
		pthread_barrier_wait(&at_once.begin);
		for (int i = 0; i < round % 7; i++)
			sched_yield();
		assert_int_equal(sqlite3_close_v2(at_once.db), SQLITE_OK);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	assert_int_equal(host_metric("sessions"), sessions);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_threads),
	};

	find_snapshots();
	is_long = argc > 2 && !strcmp(argv[2], "--long");
	run_model(is_long);
	host_begin(argv[1]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
