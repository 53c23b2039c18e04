/*
 * The trace file and the thread that fills it.
 *
 * The flusher thread drains the ring into a private SQLite file through a copy of
 * SQLite of its own (linked in, not visible outside): the host's SQLite, its
 * settings, its memory limits and its locks have no part in it. The host never
 * notices a failure: what cannot be written is counted as lost, the reason is
 * kept for system.metrics, and storing goes on when the cause has gone.
 *
 * The schema is sql/store_schema.sql. All functions are safe on any thread
 * outside the handler; none is called with a lock of the host's held that the
 * flusher could need.
 */
#ifndef QUERYPROF_STORE_STORE_H
#define QUERYPROF_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module;
struct ring;
struct sqlite3;

/* Work on the trace file that can wait: the flusher does it after a flush, in turns
 * of a few ms, as long as nobody asks for anything. `db` is its connection, without a
 * transaction, and `file` tells one file from another. True: there is more to do. */
typedef bool (*store_chore)(struct sqlite3 *db, int64_t file);

struct store_config {
	const char *path;  /* NULL or "": a private temporary file */
	int64_t max_bytes; /* of the file and its WAL; 0: no bound */
	int64_t flush_interval_ns;
	store_chore chore; /* NULL: none */
};

/* Remembers where to store. The file comes with the first record, the flusher with
 * store_start() (store_open() makes both come at once). 0 or an errno value. */
int store_init(struct ring *ring, const struct store_config *config);

/* Starts the flusher thread where it does not run yet: whoever is about to write
 * the first record, of the process or of a forked child, calls it before, on an
 * ordinary thread. One relaxed load once the flusher runs, so call it at every
 * query. Not done by store_init(): a process that runs no query keeps its single
 * thread. store_drain(), store_select() and store_configure() do it as well. */
void store_start(void);

/* Opens the file now, to learn of errors: 0, or a QP_ code with a message in
 * `*error` (free() it). A newer schema or a foreign file is refused here, and the
 * file is left as it was. */
int store_open(char **error);

/* New configuration. What the ring holds goes to the old file first. On failure
 * (as for store_open) the old configuration stays in force. */
int store_configure(const struct store_config *config, char **error);

/* Everything committed to the ring before the call is in the file after it, or
 * counted as lost. Waits at most `timeout_ms`; false when that passed. */
bool store_drain(int timeout_ms);

/* For _exit(): what is in the ring is stored within a second, or not. May be called
 * where _exit() may: in a signal handler, in a child of vfork(). */
void store_drain_for_exit(void);

/* The process's first thread is about to end, and the process goes on. It ends with its
 * last thread, and that must not be the flusher: from now on a thread looks for that. */
void store_leader_ends(void);

/* Drains, closes, and removes the private temporary file. store_init() starts
 * again. */
void store_shutdown(void);

/* The file in use (a copy, free() it), NULL when none is open. */
char *store_path(void);

enum store_counter {
	STORE_SAMPLES, /* rows written */
	STORE_QUERIES,
	STORE_LOST,    /* records taken from the ring that could not be written */
	STORE_TRIMMED, /* samples removed to keep the size bound */
	STORE_STACKS,  /* distinct stacks known to this process */
	STORE_FLUSHES, /* transactions */
	STORE_ERRORS,  /* failed transactions or opens */
	STORE_BYTES,   /* file and WAL after the newest flush */
	STORE_FLUSHER_CPU_TIME_NS,
	STORE_FIELDS_SKIPPED, /* optional fields of samples that this build does not know */
	STORE_COUNTERS,
};
uint64_t store_counter(enum store_counter which);

/* Why storing fails now: a copy, free() it; NULL while all is well. */
char *store_error(void);

/* --- reading -------------------------------------------------------------- */

/* A read-only statement on the trace file over a connection of its own from a
 * pool. `sql` sees the tables and views of sql/store_schema.sql. One thread at a
 * time uses a cursor. */
struct store_cursor;

/* NULL with a message in `*error` (free() it) on failure. */
struct store_cursor *store_select(const char *sql, char **error);
void store_bind_int64(struct store_cursor *cursor, int index, int64_t value); /* from 1 */
void store_bind_double(struct store_cursor *cursor, int index, double value);
void store_bind_text(struct store_cursor *cursor, int index, const char *text, size_t size); /* copied */
void store_bind_null(struct store_cursor *cursor, int index);

/* 1: a row; 0: the end; -1: failed, see store_cursor_error(). */
int store_step(struct store_cursor *cursor);
const char *store_cursor_error(const struct store_cursor *cursor);

enum store_type { STORE_NULL, STORE_INT64, STORE_DOUBLE, STORE_TEXT, STORE_BLOB };
enum store_type store_column_type(struct store_cursor *cursor, int column); /* from 0 */
int64_t store_column_int64(struct store_cursor *cursor, int column);
double store_column_double(struct store_cursor *cursor, int column);
/* Valid until the next store_step() or store_close(). */
const char *store_column_bytes(struct store_cursor *cursor, int column, size_t *size);
void store_close(struct store_cursor *cursor);

/* --- the store's address space -------------------------------------------- */

/* Set in an address of a trace that lies in no module; the other bits are what it was
 * in its process. */
#define STORE_NOWHERE (1ull << 62)

/* The module that `address`, as in trace_log.trace, lies in; also takes an address of this
 * process that no sample has named yet. NULL: in no module that the store knows or the
 * process has mapped. It stays valid until store_shutdown(). */
const struct module *store_locate(uint64_t address);

/* When this process began, ns since 1970, as the file's table of processes has it. */
int64_t store_process_start(void);

/* Makes addresses of this process, read against the code map `generation`, what a trace
 * in the file has for them. A module that the file does not know yet lies at its real
 * place, or nowhere when that is another's. */
void store_place(uint64_t *addresses, size_t count, uint32_t generation);

/* --- fork ----------------------------------------------------------------- */

/* before: no connection of ours is open afterwards (bounded wait; a reader that
 * does not end in time leaves the child without a store). */
void store_before_fork(void);
void store_after_fork_parent(void);
void store_after_fork_child(void);

#endif
