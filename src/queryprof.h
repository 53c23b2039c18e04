/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof: a sampling profiler for what runs inside SQLite, or inside an engine
 * of your own.
 *
 * Four ways in, one library:
 *   - nothing:  `queryprof record COMMAND` for programs that stay as they are;
 *   - SQL:      SELECT load_extension('libqueryprof'), nothing of this header;
 *   - C:        qp_attach(db) gives a connection the same abilities;
 *   - engines:  qp_init(), then qp_query_begin() / qp_query_end() around your own
 *               work, with or without SQLite.
 *
 * Threads: every function may be called on any thread at any time after it says
 * it may; none may be called in a signal handler but qp_unwind().
 * Errors: functions return QP_OK (0) or a positive QP_ code; qp_error() has the
 * sentence that goes with it. Nothing is printed, nothing aborts.
 * Times: nanoseconds. Strings: UTF-8, zero-terminated, copied by the callee.
 */
#ifndef QUERYPROF_H
#define QUERYPROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERYPROF_VERSION "0.1.0"

#if defined(__GNUC__)
#define QP_API __attribute__((visibility("default")))
#else
#define QP_API
#endif

struct sqlite3;

enum qp_code {
	QP_OK = 0,
	QP_ERROR = 1, /* anything without a code of its own; this version does not return it */
	QP_NOMEM = 2,
	QP_INVALID = 3,     /* an argument or value is not allowed; nothing changed */
	QP_NOT_FOUND = 4,   /* no setting of that name */
	QP_NOT_RUNNING = 5, /* qp_init() first; or no query to end */
	QP_LOCKED = 6,      /* the setting is locked, or fixed once sampling has begun */
	QP_SQLITE = 7,      /* SQLite refused, or no SQLite that can be seen */
	QP_STORE = 8,       /* the trace file cannot be opened or is no trace file */
	QP_TOO_NEW = 9,     /* the trace file was written by a newer queryprof */
	QP_SYSTEM = 10,     /* the system refused (signal, thread, memory map) */
};

/* The sentence for the newest error on the calling thread, "" when there was
 * none. Valid until the thread's next call of this library. */
QP_API const char *qp_error(void);

/* Process-wide settings at start. Set `size` to sizeof(qp_config); members that a
 * later version adds take their defaults. Zero members stay as qp_set() or an earlier
 * qp_init() has set them, else they take the environment's value
 * (QUERYPROF_TRACE_LOG_PATH, …; never in a set-user-id program), else the default. */
typedef struct qp_config {
	size_t size;
	const char *trace_log_path;          /* NULL: a private temporary file */
	int64_t trace_log_max_bytes;         /* default 1 GiB */
	int64_t trace_log_flush_interval_ms; /* default 1000 */
	int64_t trace_log_ring_bytes;        /* default 8 MiB, a power of two */
} qp_config;

/* Starts the library; NULL: as if all members were zero. A second call while it runs changes
 * nothing and returns QP_OK. Loading the extension calls it, too.
 * Errors: QP_INVALID, QP_NOMEM, QP_SYSTEM, QP_STORE, QP_TOO_NEW, after which no setting has changed;
 * QP_LOCKED after qp_shutdown(), as trace_log_ring_bytes is fixed by the first start, also by one that
 * could not open the trace file. */
QP_API int qp_init(const qp_config *config);

/* Stops sampling, writes what is left, closes the trace file and removes it when
 * it was the private temporary one. Connections stay usable, without samples.
 * qp_init() starts again. The library itself stays loaded and its signal handler
 * installed: signals may be on their way. Not while a query of qp_query_begin()
 * is running. */
QP_API int qp_shutdown(void);

/* Gives `db` what loading the extension gives it: the `system` schema, the SQL
 * functions, sampling of its queries. Later connections get it as well. Calls
 * qp_init(NULL) when needed.
 *
 * With sqlite3.h included before this header, `db` is of the SQLite that the caller is
 * linked with, a static copy as well as a shared library. Without, it is of the library
 * that the caller would reach by name, or else of libsqlite3.so.0.
 *
 * A static copy's code is patched, as by `queryprof record`; other threads are stopped for that
 * (docs/host-contract.md). Where it cannot be patched (the metric `libraries` says why), its calls are not
 * seen. There sqlite3_trace_v2() reports statements, and this is different:
 *   - the connection's one trace callback is taken: set yours by qp_trace(). One that was
 *     set before is lost; one that is set by sqlite3_trace_v2() later ends the sampling;
 *   - a query is taken to run while its thread holds the connection's mutex. Without that
 *     (SQLITE_OPEN_NOMUTEX, a SQLite without threads) the time between two rows is
 *     sampled as the query's, too; statements stepped in turns on one thread are counted
 *     to the one that started last; SQLite's worker threads are not sampled;
 *   - a statement continued on another thread is not sampled there;
 *   - SQL inside SQL, preparation, backups, blobs, checkpoints and closing have no rows;
 *   - the end of a statement that is finalized is part of nothing, its checkpoint neither;
 *   - query_log has no errors (exception_code 0) and no result_rows (0);
 *   - bare `PRAGMA name = value` sets, but returns no row, and a value that is refused is
 *     no error of the statement (the metric settings_error has it). `PRAGMA system.name` has
 *     both, and reads: the schema is there from the start.
 * Errors: those of qp_init(), QP_SQLITE. */
QP_API int qp_attach(struct sqlite3 *db);

/* The functions of a SQLite by which a connection of it is attached: for callers that
 * are not linked with it. Set `size` to sizeof(qp_sqlite). */
typedef struct qp_sqlite {
	size_t size;
	int (*open)(const char *path, struct sqlite3 **db);
	int (*close)(struct sqlite3 *db);
	int (*auto_extension)(void (*entry)(void));
	int (*cancel_auto_extension)(void (*entry)(void));
} qp_sqlite;

/* qp_attach() of a connection of that SQLite. Errors: as qp_attach(), QP_INVALID. */
QP_API int qp_attach_of(struct sqlite3 *db, const qp_sqlite *sqlite);

#if defined(SQLITE_VERSION) && !defined(SQLITE3EXT_H)
static inline int qp_attach_linked(struct sqlite3 *db)
{
	const qp_sqlite linked = { sizeof(linked), sqlite3_open, sqlite3_close, sqlite3_auto_extension,
		                   sqlite3_cancel_auto_extension };

	return qp_attach_of(db, &linked);
}
#define qp_attach(db) qp_attach_linked(db)
#endif

/* sqlite3_trace_v2() of an attached connection, with the same arguments: your callback is
 * called after queryprof's where that needs the connection's only one, as above. Callback NULL:
 * none. Errors: QP_INVALID (not attached), QP_SQLITE. */
QP_API int qp_trace(struct sqlite3 *db, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                    void *context);

/* Samples the queries of every connection, old and new, of the SQLite library that the
 * process has loaded, as `queryprof record` does: nothing is added to a connection, so
 * SQL sees neither tables nor functions nor settings; new settings come by qp_set()
 * with NULL, before the connection's first statement. Calls qp_init(NULL) at the first
 * query. Again: follows what has been loaded since.
 * Errors: QP_SQLITE (none is loaded yet: call again when it is). */
QP_API int qp_record(void);

/* The same for the SQLite that is linked into a program or a module, which is named by the
 * table of routines that it hands to extensions. No connection of it may be open yet: its
 * functions get a jump where they begin. Again is nothing.
 * Errors: QP_INVALID (no object has this table), QP_SQLITE (it cannot be watched), QP_NOMEM,
 * QP_SYSTEM (another thread is at it without end). */
struct sqlite3_api_routines;
QP_API int qp_record_static(const struct sqlite3_api_routines *table);

/* The extension's entry point, as SQLite calls it. */
QP_API int sqlite3_queryprof_init(struct sqlite3 *db, char **error, const struct sqlite3_api_routines *api);

/* A second entry point, for a connection whose main database is a trace file: it gets the
 * SQL functions, with names and lines of that file, and nothing else. Nothing is sampled.
 *   sqlite3 -readonly app.trace
 *   sqlite> .load ./libqueryprof sqlite3_queryprof_trace_init */
QP_API int sqlite3_queryprof_trace_init(struct sqlite3 *db, char **error,
                                        const struct sqlite3_api_routines *api);

/* Changes one setting, as PRAGMA name = value does. `db` may be NULL for a
 * process-wide setting; for a setting of a session it then sets what new
 * connections start with, and what qp_query_begin() uses.
 * Errors: QP_NOT_FOUND, QP_INVALID, QP_LOCKED, QP_NOMEM, QP_STORE, QP_TOO_NEW. */
QP_API int qp_set(struct sqlite3 *db, const char *name, const char *value);

/* Writes the setting's value as text into `value` (cut to `size`, always
 * zero-terminated). Errors: QP_NOT_FOUND, QP_INVALID. */
QP_API int qp_get(struct sqlite3 *db, const char *name, char *value, size_t size);

/* From now on settings can be changed only by C: SQL gets an error. For good. */
QP_API void qp_lock_settings(void);

/* One query of an engine. Set `size` to sizeof(qp_query). */
typedef struct qp_query {
	size_t size;
	const char *text;     /* shown in query_log; may be NULL */
	const char *database; /* may be NULL */
	const char *query_id; /* your own id; NULL: one is made (UUID version 7) */
} qp_query;

/* From here to qp_query_end() the calling thread works for `query`. Calls nest
 * (16 deep with samples of their own). NULL: a query without text.
 * Wall-time samples end the thread's sleeps and waits in between early, with
 * EINTR, where SA_RESTART does not resume them (signal(7)).
 * Errors: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID. */
QP_API int qp_query_begin(const qp_query *query);

/* Ends the thread's innermost query of qp_query_begin(). exception_code 0: all
 * went well; `exception` may be NULL. Error: QP_NOT_RUNNING. */
QP_API int qp_query_end(int64_t exception_code, const char *exception);

/* --- labels: why a thread does what it does ---------------------------------------------
 *
 * The samples of a thread carry the labels that are in force on it, as a JSON object in the
 * column `labels`. The innermost label of a key counts. Nothing here needs qp_init(). */

typedef struct qp_label {
	const char *key;  /* up to 128 bytes, not empty */
	const char *text; /* up to 1,024 bytes, the rest is cut; NULL: the number */
	int64_t number;
	const char *unit; /* of the number, as "bytes"; may be NULL */
} qp_label;

typedef struct qp_label_set qp_label_set;

/* A set of up to 64 labels; the first of a key is kept. Equal sets are one. NULL with an error:
 * QP_INVALID, QP_NOMEM. */
QP_API qp_label_set *qp_labels_new(const qp_label *labels, size_t count);

/* The set is not used again by the caller. At any time: threads that are inside the set keep its
 * labels until they leave. NULL is nothing. */
QP_API void qp_labels_free(qp_label_set *set);

/* function(argument) under the set: an indirect call through code that is the set's own, so that
 * the labels stand on the stack and cost nothing to set. C++ exceptions pass through, and so do
 * longjmp() and coroutines. Set NULL: a plain call.
 * There are 4,096 such pieces of code ("trampolines"); sets beyond them share one, which only
 * queryprof's own samples distinguish (the metric label_sets_without_trampoline). */
QP_API void qp_labels_run(const qp_label_set *set, void (*function)(void *), void *argument);

/* For code that cannot be wrapped in a call: from here to qp_labels_leave(), with what this
 * returned, the calling thread is under the set, instead of the one that it had entered. NULL:
 * under none. */
QP_API uint64_t qp_labels_enter(const qp_label_set *set);
QP_API void qp_labels_leave(uint64_t before);

/* --- one query on many threads ------------------------------------------------------------
 *
 * From qp_query_start() to qp_query_finish() any number of threads may work for the query, in
 * turns or at once. query_log has one row of it: cpu_time_ns is the time that its samples stand for, as no
 * clock is read when a thread comes and goes, and `threads` how many came. It is no span of a trace. */

typedef struct qp_query_handle qp_query_handle;

/* NULL with an error: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID. The calling thread is not inside. */
QP_API qp_query_handle *qp_query_start(const qp_query *query);

/* From here to qp_query_leave(), with what this returned, the calling thread works for the
 * handle's query, instead of the one that it was inside. NULL: for none. */
QP_API qp_query_handle *qp_query_enter(qp_query_handle *handle);
QP_API void qp_query_leave(qp_query_handle *before);

/* Ends the query, when all threads have left it; the calling one may be inside. As
 * qp_query_end(). The handle is not used again: a later qp_query_start() may return it.
 * Error: QP_INVALID (NULL, or it has been finished and no other query has it). */
QP_API int qp_query_finish(qp_query_handle *handle, int64_t exception_code, const char *exception);

/* The context of a thread: the set that it has entered, the query with a handle, and the running
 * span. For task queues: the code that makes a task keeps the result of qp_context_get() in it. The
 * thread that runs the task calls qp_context_set() with that, and afterwards restores the context that
 * qp_context_set() returned. Spans of the task are children of the
 * span where it was made, as with qp_span_fork() and qp_span_join(); those that still run when the
 * task gives its thread back end then, and so do traces that it has begun. A context may outlive its query:
 * it is of none then. (A set of qp_labels_run() stands on the stack and is no part of this: run the task
 * under it.) */
typedef struct qp_context {
	uint64_t labels;
	qp_query_handle *query;
	uint64_t query_key;
	uint64_t trace_hi, trace_lo, span;
	uint64_t flags; /* the library's */
} qp_context;

QP_API qp_context qp_context_get(void);
QP_API qp_context qp_context_set(qp_context context); /* returns what was there */

/* A label of the queries of an attached connection, as SELECT set_label(key, text) has it; `db`
 * NULL: of what new connections and qp_query_begin() start with. `text` NULL: none any more.
 * Errors: QP_INVALID, QP_NOMEM, QP_LOCKED. */
QP_API int qp_set_label(struct sqlite3 *db, const char *key, const char *text);

/* Stack trace of the thread that a signal interrupted; `ucontext` is the third
 * argument of its SA_SIGINFO handler. Writes at most `max` entries, leaf first:
 * the interrupted address, then for each caller an address inside its call
 * instruction (return address - 1), so that each entry can be looked up as it
 * is. Returns the number written, or minus that number when the bottom of the
 * stack was not reached.
 * Async-signal-safe after qp_init(), usable alone. The thread's stack is read within
 * its bounds, which qp_thread_register() or its first query makes known; any other
 * stack (of a thread that is not known, an alternate signal stack, a coroutine's) as
 * far as the kernel says, of each page, that it can be read. Needs at most
 * 4 KiB of the stack that it is called on, 1 KiB when the code was seen before (1.5 KiB
 * on an unknown stack); the signal handler of the library's own samples needs no more
 * below the frame that the kernel makes. */
QP_API int qp_unwind(const void *ucontext, uint64_t *trace, int max);

/* Makes the calling thread known, so that qp_unwind() has its stack's bounds and
 * needs no call of the kernel.
 * Undone when the thread ends. Errors: QP_NOT_RUNNING, QP_NOMEM. */
QP_API int qp_thread_register(void);

/* One row of system.metrics. `text` is NULL for numbers. Strings are valid
 * during the call. */
typedef struct qp_metric {
	const char *name;
	int64_t value;
	const char *text;
	const char *description;
} qp_metric;

/* Calls `each` for every metric until it returns non-zero; returns QP_OK. */
QP_API int qp_metrics(int (*each)(void *context, const qp_metric *metric), void *context);

/* Everything sampled before the call can be read after it. Waits at most
 * `timeout_ms`. Errors: QP_NOT_RUNNING, QP_STORE (timed out or not writable). */
QP_API int qp_flush(int timeout_ms);

/* --- spans ---------------------------------------------------------------------------------
 *
 * A trace is the tree of what happened in one request. A span is one part of it: from its
 * begin to its end on one thread, the child of the span that runs there. Spans are recorded on
 * a thread that has a trace; elsewhere each call is one load and one branch. Every run of a
 * statement inside a trace is a span by itself, unless the setting trace_statements is off, or
 * log_queries 0.
 *
 *	qp_trace_begin(NULL);
 *	{
 *		QP_SPAN("request");
 *		...
 *	}
 *	qp_trace_end();
 *
 * A pair of begin and end reads the clock twice. Only the first at a site takes a lock and memory,
 * and each thousandth of a thread may take memory. A thread hands its records over when its trace,
 * or its part of one, ends, and by the thousand before. Names, files and functions are cut at 255
 * bytes.
 */

/* Where spans begin, a static variable. */
typedef struct qp_span_site {
	const char *name, *file, *function;
	uint32_t line;
	uint32_t number; /* the library's; 0 at first */
} qp_span_site;

/* clang-format off */
#define QP_SPAN_SITE(name) { name, __FILE__, __func__, __LINE__, 0 }
/* clang-format on */

/* A span that runs. 0: it is not recorded. */
typedef struct qp_span {
	uint64_t id;
} qp_span;

/* The calling thread's store of spans, NULL: it records none. Only to be compared with NULL. */
struct qp_span_context;
extern QP_API __thread struct qp_span_context *qp_span_here __attribute__((tls_model("initial-exec")));

/* Begins a span as the child of the thread's running one. Ends it; spans inside of it that
 * have not ended (longjmp(), a return between) end now, too, and are marked as unended.
 * A span that has ended, or is another thread's, is left as it is. */
QP_API qp_span qp_span_begin(qp_span_site *site);
QP_API void qp_span_end(qp_span span);

static inline qp_span qp_span_begin_here(qp_span_site *site)
{
	const qp_span none = { 0 };

	return __builtin_expect(qp_span_here != NULL, 0) ? qp_span_begin(site) : none;
}

static inline void qp_span_end_here(qp_span span)
{
	if (__builtin_expect(span.id != 0, 0))
		qp_span_end(span);
}

static inline void qp_span_end_scope(const qp_span *span)
{
	qp_span_end_here(*span);
}

#define qp_span_begin(site) qp_span_begin_here(site)
#define qp_span_end(span) qp_span_end_here(span)

/* A span from here to the end of the block. */
#define QP_SPAN_JOIN_(name, line) name##line
#define QP_SPAN_NAME_(name, line) QP_SPAN_JOIN_(name, line)
#define QP_SPAN(name)                                                                                        \
	static qp_span_site QP_SPAN_NAME_(qp_site_, __LINE__) = QP_SPAN_SITE(name);                          \
	const qp_span QP_SPAN_NAME_(qp_span_, __LINE__)                                                      \
		__attribute__((cleanup(qp_span_end_scope), unused)) =                                        \
			qp_span_begin(&QP_SPAN_NAME_(qp_site_, __LINE__))

/* Begins a trace on the calling thread. `traceparent` is the request's, as the W3C says
 * ("00-4bf92f35…-00f067aa…-01"); NULL: the trace gets an id of its own. Traces nest: a second
 * one on the same thread is one of its own. Errors: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID
 * (traceparent, or 16 deep); then no trace has begun and none is to be ended. */
QP_API int qp_trace_begin(const char *traceparent);

/* Ends what qp_trace_begin(), qp_span_join() or qp_span_follow() began last on the calling
 * thread. Spans of it that run are ended and marked. Whether the trace is kept is decided at
 * the end of its root: see the setting trace_keep. */
QP_API void qp_trace_end(void);

/* The traceparent for a call that the running span makes: 55 characters and a zero. "" outside
 * of a trace. */
#define QP_TRACEPARENT_BYTES 56
QP_API void qp_traceparent(char text[QP_TRACEPARENT_BYTES]);

/* The running span as the parent of what other threads do. Copied as you like; also to a child
 * of fork(). Outside of a trace: a handle that records nothing. */
typedef struct qp_span_handle {
	uint64_t trace_hi, trace_lo, span;
	uint64_t flags; /* the library's */
} qp_span_handle;

QP_API qp_span_handle qp_span_fork(void);

/* The calling thread is part of the handle's trace until qp_trace_end(); its outermost spans
 * are children of the span of the fork. Any number of threads may join one handle, at the same
 * time and again. Errors: as qp_trace_begin(). */
QP_API int qp_span_join(qp_span_handle handle);

/* The same for work that is done for several requests at once: its spans are part of each of
 * the `count` (1 to 1000) traces. Errors: as qp_trace_begin(). */
QP_API int qp_span_follow(const qp_span_handle *handles, size_t count);

/* A span that begins on one thread and may end on another: a child of the span that runs where
 * it begins, and not itself the running one. qp_span_object_handle() makes others its children. */
typedef struct qp_span_object {
	qp_span_handle parent;
	uint64_t id, start_ns;
	qp_span_site *site;
	uint64_t thread_id;
} qp_span_object;

QP_API void qp_span_object_begin(qp_span_object *object, qp_span_site *site);
QP_API qp_span_handle qp_span_object_handle(const qp_span_object *object);
QP_API void qp_span_object_end(qp_span_object *object);

/* More of a span that runs on the calling thread: these cost more. A text is copied, and cut at
 * 1000 bytes. */
QP_API void qp_span_attr(qp_span span, const char *key, const char *value);
QP_API void qp_span_attr_number(qp_span span, const char *key, int64_t value);
QP_API void qp_span_event(qp_span span, const char *name);

enum qp_span_status { QP_SPAN_UNSET = 0, QP_SPAN_OK = 1, QP_SPAN_ERROR = 2 };
QP_API void qp_span_set_status(qp_span span, enum qp_span_status status);

#ifdef __cplusplus
}
#endif
#endif
