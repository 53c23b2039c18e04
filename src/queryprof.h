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
 * Threads: you may call every function on any thread, at any time that its comment
 * allows. Only qp_unwind() may be called in a signal handler.
 * Errors: functions return QP_OK (0) or a positive QP_ code; qp_error() returns the
 * sentence for it. The library never prints and never aborts.
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
	QP_ERROR = 1, /* no other code applies; this version does not return it */
	QP_NOMEM = 2,
	QP_INVALID = 3,     /* an argument or value is not allowed; nothing changed */
	QP_NOT_FOUND = 4,   /* no setting of that name */
	QP_NOT_RUNNING = 5, /* qp_init() first; or no query to end */
	QP_LOCKED = 6,      /* the setting is locked, or fixed since sampling began */
	QP_SQLITE = 7,      /* SQLite refused, or queryprof sees no SQLite */
	QP_STORE = 8,       /* the trace file cannot be opened or is not a trace file */
	QP_TOO_NEW = 9,     /* the trace file was written by a newer queryprof */
	QP_SYSTEM = 10,     /* the system refused (signal, thread, memory map) */
};

/* The sentence for the newest error on the calling thread, "" if there was
 * none. Valid until the thread's next call of this library. */
QP_API const char *qp_error(void);

/* Process-wide settings at start. Set `size` to sizeof(qp_config): members that a later version of the
 * library adds have their defaults then, and an earlier version ignores members that it does not know.
 * Members are added at the end only. A member that is 0 keeps the value of qp_set()
 * or of an earlier qp_init(). Without one, it is the environment's value
 * (QUERYPROF_TRACE_LOG_PATH, …; never in a set-user-id program), or the default. */
typedef struct qp_config {
	size_t size;
	const char *trace_log_path;          /* NULL: a private temporary file */
	int64_t trace_log_max_bytes;         /* default 1 GiB */
	int64_t trace_log_flush_interval_ms; /* default 1000 */
	int64_t trace_log_ring_bytes;        /* default 8 MiB, a power of two */
} qp_config;

/* Starts the library. NULL is the same as a config whose members are all zero. Idempotent: a second
 * call while the library runs changes nothing and returns QP_OK. Loading the extension calls it.
 * Errors: QP_INVALID, QP_NOMEM, QP_SYSTEM, QP_STORE, QP_TOO_NEW; none of these changes a setting.
 * QP_LOCKED after qp_shutdown(), because the first start fixes trace_log_ring_bytes, also if it
 * could not open the trace file. */
QP_API int qp_init(const qp_config *config);

/* Stops sampling, writes the remaining samples and closes the trace file. It removes the
 * file if it was the private temporary one. Connections stay usable, without samples.
 * qp_init() starts again. The library stays loaded and its signal handler installed,
 * because signals may be in flight. Do not call it while a query of qp_query_begin()
 * runs. */
QP_API int qp_shutdown(void);

/* Does for `db` what loading the extension does: it adds the `system` schema and the SQL
 * functions, and samples the queries. Later connections get the same. Calls
 * qp_init(NULL) if needed.
 *
 * If sqlite3.h is included before this header, `db` belongs to the SQLite that the caller is
 * linked with, a static copy or a shared library. Otherwise it belongs to the library
 * that the caller would reach by name, or else to libsqlite3.so.0.
 *
 * queryprof patches the code of a static copy, as `queryprof record` does, and stops other threads
 * for that (docs/host-contract.md). If it cannot patch the code (the metric `libraries` says why), it
 * does not see the calls. Then sqlite3_trace_v2() reports statements, with these differences:
 *   - queryprof uses the connection's only trace callback. Set yours with qp_trace(). A callback that
 *     was set before is lost; setting one with sqlite3_trace_v2() later ends the sampling;
 *   - queryprof assumes that a query runs while its thread holds the connection's mutex. Without a
 *     mutex (SQLITE_OPEN_NOMUTEX, a SQLite without threads), the time between two rows is sampled as
 *     the query's; if statements are stepped alternately on one thread, all count as the one that
 *     started last; SQLite's worker threads are not sampled;
 *   - a statement that continues on another thread is not sampled there;
 *   - SQL inside SQL, preparation, backups, blobs, checkpoints and closing have no rows;
 *   - finalizing a statement, and the checkpoint in it, is part of no statement;
 *   - query_log has no errors (exception_code 0) and no result_rows (0);
 *   - bare `PRAGMA name = value` works but returns no row. A refused value is not an error of
 *     the statement; the metric settings_error has it. `PRAGMA system.name` returns rows and
 *     errors, and reads, because the schema exists from the start.
 * Errors: those of qp_init(), QP_SQLITE. */
QP_API int qp_attach(struct sqlite3 *db);

/* The functions of a SQLite that attaching one of its connections needs, for callers that
 * are not linked with it. Set `size` to sizeof(qp_sqlite). */
typedef struct qp_sqlite {
	size_t size;
	int (*open)(const char *path, struct sqlite3 **db);
	int (*close)(struct sqlite3 *db);
	int (*auto_extension)(void (*entry)(void));
	int (*cancel_auto_extension)(void (*entry)(void));
} qp_sqlite;

/* qp_attach() for a connection of that SQLite. Errors: as qp_attach(), QP_INVALID. */
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

/* sqlite3_trace_v2() for an attached connection, with the same arguments. If queryprof uses the
 * connection's only trace callback, as above, it calls yours after its own. Callback NULL removes
 * yours. Errors: QP_INVALID (not attached), QP_SQLITE. */
QP_API int qp_trace(struct sqlite3 *db, unsigned mask, int (*callback)(unsigned, void *, void *, void *),
                    void *context);

/* Samples the queries of every connection, old and new, of the SQLite library that the
 * process has loaded, as `queryprof record` does. It adds nothing to a connection, so
 * SQL sees neither tables nor functions nor settings. Change settings with qp_set(NULL, …),
 * before the connection's first statement. Calls qp_init(NULL) at the first query. A second
 * call follows libraries that were loaded since.
 * Errors: QP_SQLITE (none is loaded yet, so call it again later; or it cannot be followed). */
QP_API int qp_record(void);

/* The same for a SQLite that is linked into a program or a module. The table of routines that it
 * passes to extensions identifies it. It must have no open connection yet, because queryprof
 * replaces the first instructions of its functions with jumps. Idempotent.
 * Errors: QP_INVALID (no object has this table), QP_SQLITE (it cannot be followed), QP_NOMEM,
 * QP_SYSTEM (another thread does the same and does not finish). */
struct sqlite3_api_routines;
QP_API int qp_record_static(const struct sqlite3_api_routines *table);

/* The extension's entry point, as SQLite calls it. */
QP_API int sqlite3_queryprof_init(struct sqlite3 *db, char **error, const struct sqlite3_api_routines *api);

/* A second entry point, for a connection whose main database is a trace file. It adds only the
 * SQL functions, with names and lines of that file. It samples nothing.
 *   sqlite3 -readonly app.trace
 *   sqlite> .load ./libqueryprof sqlite3_queryprof_trace_init */
QP_API int sqlite3_queryprof_trace_init(struct sqlite3 *db, char **error,
                                        const struct sqlite3_api_routines *api);

/* Changes one setting, as PRAGMA name = value does. `db` may be NULL for a
 * process-wide setting. For a setting of a session, NULL sets the value that new
 * connections start with and that qp_query_begin() uses.
 * Errors: QP_NOT_FOUND, QP_INVALID, QP_LOCKED, QP_NOMEM, QP_STORE, QP_TOO_NEW. */
QP_API int qp_set(struct sqlite3 *db, const char *name, const char *value);

/* Writes the setting's value as text into `value` (cut to `size`, always
 * zero-terminated). Errors: QP_NOT_FOUND, QP_INVALID. */
QP_API int qp_get(struct sqlite3 *db, const char *name, char *value, size_t size);

/* From now on only C can change settings; in SQL that is an error. Permanent. */
QP_API void qp_lock_settings(void);

/* One query of an engine. Set `size` to sizeof(qp_query). */
typedef struct qp_query {
	size_t size;
	const char *text;     /* shown in query_log; may be NULL */
	const char *database; /* may be NULL */
	const char *query_id; /* your own id; NULL: queryprof makes one (UUID version 7) */
} qp_query;

/* From this call to qp_query_end() the calling thread works for `query`. Calls nest
 * (16 deep with samples of their own). NULL: a query without text.
 * Wall-time samples end the thread's sleeps and waits in between early, with
 * EINTR, if SA_RESTART does not resume them (signal(7)).
 * Errors: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID. */
QP_API int qp_query_begin(const qp_query *query);

/* Ends the thread's innermost query of qp_query_begin(). exception_code 0:
 * success; `exception` may be NULL. Error: QP_NOT_RUNNING. */
QP_API int qp_query_end(int64_t exception_code, const char *exception);

/* --- labels: whose work a thread does ---------------------------------------------------
 *
 * The samples of a thread have the labels that are in force on it, as a JSON object in the
 * column `labels`. If a key is set several times, the innermost label wins. Nothing here needs
 * qp_init(). */

typedef struct qp_label {
	const char *key;  /* up to 128 bytes, not empty */
	const char *text; /* up to 1,024 bytes, the rest is cut; NULL: the number */
	int64_t number;
	const char *unit; /* of the number, such as "bytes"; may be NULL */
} qp_label;

typedef struct qp_label_set qp_label_set;

/* A set of up to 64 labels. If a key occurs several times, the first label wins. Equal sets are one
 * object. Returns NULL with an error: QP_INVALID, QP_NOMEM. */
QP_API qp_label_set *qp_labels_new(const qp_label *labels, size_t count);

/* Releases the set; the caller must not use it again. Allowed at any time: threads inside the set
 * keep its labels until they leave. NULL is ignored. */
QP_API void qp_labels_free(qp_label_set *set);

/* Calls function(argument) under the set: an indirect call through code that belongs to the set, so
 * the labels are on the stack and cost nothing to set. C++ exceptions, longjmp() and coroutines pass
 * through. Set NULL: a plain call.
 * There are 4,096 such pieces of code ("trampolines"); sets beyond them share one, which only
 * queryprof's own samples distinguish (the metric label_sets_without_trampoline). */
QP_API void qp_labels_run(const qp_label_set *set, void (*function)(void *), void *argument);

/* For code that cannot be wrapped in a call. From this call to qp_labels_leave() the calling thread
 * is under this set, instead of the one that it had entered. Pass the returned value to
 * qp_labels_leave(). NULL: under no set. */
QP_API uint64_t qp_labels_enter(const qp_label_set *set);
QP_API void qp_labels_leave(uint64_t before);

/* --- one query on many threads ------------------------------------------------------------
 *
 * From qp_query_start() to qp_query_finish() any number of threads may work for the query, one after
 * the other or at the same time. query_log has one row for it. Its cpu_time_ns is the time that its samples
 * represent, because queryprof reads no clock when a thread enters or leaves; `threads` is the number of
 * threads. It is not a span of a trace. */

typedef struct qp_query_handle qp_query_handle;

/* NULL with an error: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID. The calling thread is not inside. */
QP_API qp_query_handle *qp_query_start(const qp_query *query);

/* From this call to qp_query_leave() the calling thread works for the handle's query, instead of the
 * one that it was inside. Pass the returned value to qp_query_leave(). NULL: for no query. */
QP_API qp_query_handle *qp_query_enter(qp_query_handle *handle);
QP_API void qp_query_leave(qp_query_handle *before);

/* Ends the query, as qp_query_end() does. All other threads must have left it. Do not use the
 * handle again: a later qp_query_start() may return it.
 * Error: QP_INVALID (NULL, or it has been finished and no other query has it). */
QP_API int qp_query_finish(qp_query_handle *handle, int64_t exception_code, const char *exception);

/* The context of a thread: the set that it has entered, the query with a handle, and the running
 * span. For task queues: the code that creates a task stores the result of qp_context_get() in it. The
 * thread that runs the task calls qp_context_set() with that, and afterwards restores the context that
 * qp_context_set() returned. Spans of the task are children of the
 * span where it was created, as with qp_span_fork() and qp_span_join(). Spans that still run when the
 * task returns its thread end then, and so do traces that the task began. A context may outlive its query;
 * it then belongs to no query. (A set of qp_labels_run() is on the stack and not part of the context: run the
 * task under it.) */
typedef struct qp_context {
	uint64_t labels;
	qp_query_handle *query;
	uint64_t query_key;
	uint64_t trace_hi, trace_lo, span;
	uint64_t flags; /* the library's */
} qp_context;

QP_API qp_context qp_context_get(void);
QP_API qp_context qp_context_set(qp_context context); /* returns the previous context */

/* Sets a label of the queries of an attached connection, as SELECT set_label(key, text) does. `db`
 * NULL: the label that new connections and qp_query_begin() start with. `text` NULL removes it.
 * Errors: QP_INVALID, QP_NOMEM, QP_LOCKED. */
QP_API int qp_set_label(struct sqlite3 *db, const char *key, const char *text);

/* Stack trace of the thread that a signal interrupted; `ucontext` is the third
 * argument of its SA_SIGINFO handler. Writes at most `max` entries, leaf first:
 * the interrupted address, then for each caller an address inside its call
 * instruction (return address - 1), so that each entry can be looked up as it
 * is. Returns the number written, or minus that number if it did not reach the bottom of
 * the stack.
 * Async-signal-safe after qp_init(), usable alone. It reads the thread's stack within
 * its bounds, which qp_thread_register() or the thread's first query makes known. It reads any other
 * stack (of an unknown thread, an alternate signal stack, a coroutine's) page by page, as
 * far as the kernel says that a page can be read. Needs at most
 * 4 KiB of the stack that it is called on, 1 KiB if the code was seen before (1.5 KiB
 * on an unknown stack); the signal handler of the library's own samples needs no more
 * below the frame that the kernel makes. */
QP_API int qp_unwind(const void *ucontext, uint64_t *trace, int max);

/* Makes the calling thread known, so that qp_unwind() has its stack's bounds and
 * needs no system call.
 * The end of the thread undoes it. Errors: QP_NOT_RUNNING, QP_NOMEM. */
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

/* Stores everything that was sampled before the call, so that it can be read. Waits at most
 * `timeout_ms`. Errors: QP_NOT_RUNNING, QP_STORE (timed out or not writable). */
QP_API int qp_flush(int timeout_ms);

/* --- spans ---------------------------------------------------------------------------------
 *
 * A trace is the tree of what happened in one request. A span is one part of it: from its
 * begin to its end on one thread, a child of the span that runs there. queryprof records spans on
 * a thread that has a trace; elsewhere each call is one load and one branch. Every run of a
 * statement inside a trace is a span automatically, unless the setting trace_statements is off, or
 * log_queries 0.
 *
 *	qp_trace_begin(NULL);
 *	{
 *		QP_SPAN("request");
 *		...
 *	}
 *	qp_trace_end();
 *
 * A pair of begin and end reads the clock twice. Only the first span at a site takes a lock and memory,
 * and each thousandth span of a thread may take memory. A thread hands its records over when its trace,
 * or its part of one, ends, and before that after each thousand. Names, files and functions are cut at 255
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

/* A running span. 0: it is not recorded. */
typedef struct qp_span {
	uint64_t id;
} qp_span;

/* The calling thread's store of spans. NULL: it records none. Only compare it with NULL. */
struct qp_span_context;
extern QP_API __thread struct qp_span_context *qp_span_here __attribute__((tls_model("initial-exec")));

/* qp_span_begin() begins a span as a child of the thread's running span. qp_span_end() ends it, and
 * also the spans inside it that have not ended (after longjmp() or a return), which are marked as
 * unended. It ignores a span that has ended, or that belongs to another thread. */
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

/* Begins a trace on the calling thread. `traceparent` is the request's, in W3C's format
 * ("00-4bf92f35…-00f067aa…-01"). NULL: the trace gets an id of its own. Traces nest: a second
 * trace on the same thread is a separate one. Errors: QP_NOT_RUNNING, QP_NOMEM, QP_INVALID
 * (traceparent, or 16 deep). After an error no trace has begun, so do not end it. */
QP_API int qp_trace_begin(const char *traceparent);

/* Ends the trace, or part of one, that qp_trace_begin(), qp_span_join() or qp_span_follow() last began on
 * the calling thread. It ends and marks spans that still run. The end of the root decides whether the trace
 * is kept: see the setting trace_keep. */
QP_API void qp_trace_end(void);

/* The traceparent for a call that the running span makes: 55 characters and a zero. "" outside
 * a trace. */
#define QP_TRACEPARENT_BYTES 56
QP_API void qp_traceparent(char text[QP_TRACEPARENT_BYTES]);

/* The running span, as the parent of spans on other threads. You may copy it, also to a child
 * of fork(). Outside a trace it is a handle that records nothing. */
typedef struct qp_span_handle {
	uint64_t trace_hi, trace_lo, span;
	uint64_t flags; /* the library's */
} qp_span_handle;

QP_API qp_span_handle qp_span_fork(void);

/* Makes the calling thread part of the handle's trace until qp_trace_end(). Its outermost spans
 * are children of the span that forked. Any number of threads may join one handle, at the same
 * time and repeatedly. Errors: as qp_trace_begin(). */
QP_API int qp_span_join(qp_span_handle handle);

/* The same for work that serves several requests together: its spans are part of each of
 * the `count` (1 to 1000) traces. Errors: as qp_trace_begin(). */
QP_API int qp_span_follow(const qp_span_handle *handles, size_t count);

/* A span that begins on one thread and may end on another. It is a child of the span that runs where
 * it begins, and is not the running span itself. qp_span_object_handle() makes other spans its children. */
typedef struct qp_span_object {
	qp_span_handle parent;
	uint64_t id, start_ns;
	qp_span_site *site;
	uint64_t thread_id;
} qp_span_object;

QP_API void qp_span_object_begin(qp_span_object *object, qp_span_site *site);
QP_API qp_span_handle qp_span_object_handle(const qp_span_object *object);
QP_API void qp_span_object_end(qp_span_object *object);

/* Add to a span that runs on the calling thread. These calls cost more than a span. A text is copied, and
 * cut at 1000 bytes. */
QP_API void qp_span_attr(qp_span span, const char *key, const char *value);
QP_API void qp_span_attr_number(qp_span span, const char *key, int64_t value);
QP_API void qp_span_event(qp_span span, const char *name);

enum qp_span_status { QP_SPAN_UNSET = 0, QP_SPAN_OK = 1, QP_SPAN_ERROR = 2 };
QP_API void qp_span_set_status(qp_span span, enum qp_span_status status);

#ifdef __cplusplus
}
#endif
#endif
