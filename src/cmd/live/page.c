/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/page.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cmd/live/row.h"
#include "query/normalize.h"
#include "sql_live_plan.h"
#include "sql_live_runs.h"
#include "sql_live_stacks.h"
#include "sql_live_statements.h"
#include "sql_live_transactions.h"
#include "sql_live_waits.h"

/* --- lines ------------------------------------------------------------------------------------- */

void page_clear(struct page *page)
{
	for (size_t i = 0; i < page->lines.count; i++) {
		free(page->lines.items[i].text);
		free(page->lines.items[i].query);
	}
	page->lines.count = 0;
}

/* Takes ownership of `text`, a malloc'ed line. */
static struct page_line *add(struct page *page, char *text)
{
	struct page_line *line = text ? vector_add(&page->lines) : NULL;

	if (!line) {
		free(text);
		return NULL;
	}
	for (char *at = text; *at; at++)
		*at = *at == '\n' || *at == '\t' || *at == '\r' ? ' ' : *at;
	line->text = text;
	return line;
}

static void add_statement(struct page *page, char *text, int64_t hash, const char *query)
{
	struct page_line *line = add(page, text);

	if (!line || !*query)
		return;
	line->query = strdup(query);
	line->is_statement = line->query != NULL;
	line->hash = hash;
}

static int finish(sqlite3_stmt *rows, int code)
{
	sqlite3_finalize(rows);
	return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

/* --- a recording ---------------------------------------------------------------------------------- */

static void add_head(struct page *page, const struct live *live, const struct snapshot *snapshot)
{
	const char *name = strrchr(live->path, '/');

	add(page, text_format("%s: %d process%s, %d in SQLite, %d between rows, %d transaction%s%s",
	                      name ? name + 1 : live->path, snapshot->processes,
	                      snapshot->processes == 1 ? "" : "es", snapshot->running, snapshot->between,
	                      snapshot->transactions, snapshot->transactions == 1 ? "" : "s",
	                      !snapshot->processes ? ": nothing is recorded now"
	                      : snapshot->unread   ? ", some cannot be read"
	                                           : ""));
}

/* How wide columns may be, so that a narrow screen has room for the statement. */
struct widths {
	int thread, doing;
	bool has_parts; /* of the wall time */
};

static struct widths widths_of(int columns)
{
	if (columns >= 100)
		return (struct widths){ 10, 30, true };
	return columns >= 70 ? (struct widths){ 8, 20, true } : (struct widths){ 0, 8, false };
}

/* The most rows; the rest appears as a number. */
static int add_runs(struct page *page, sqlite3 *db, const struct snapshot *snapshot, struct widths widths,
                    int most)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_runs, PAGE_SECONDS);
	char words[ROW_WORDS], age[ROW_DURATION];
	int code = SQLITE_ERROR, count = 0;

	if (rows)
		add(page, text_format("%8s  %-*.*s %-*.*s %s", "elapsed", widths.thread, widths.thread,
		                      "thread", widths.doing, widths.doing, "doing", "statement"));
	while (rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *query = row_text(rows, "query");

		if (count++ >= most)
			continue;
		query += strspn(query, " \t\r\n");
		row_duration(rows, "elapsed_ns", age);
		add_statement(page,
		              text_format("%8s  %-*.*s %-*.*s %s", age, widths.thread, widths.thread,
		                          row_text(rows, "thread_id"), widths.doing, widths.doing,
		                          row_doing(rows, words), query),
		              row_number(rows, "is_cut") ? 0 : (int64_t)normalize_hash(query, strlen(query)),
		              query);
		if (row_has(rows, "wait_cause") && *row_holder(rows, words) && most > 3)
			add(page, text_format("%10s%-*s holder: %s", "", widths.thread, "", words));
	}
	if (count > most)
		add(page, text_format("%10s%d more", "", count - most));
	if (!count)
		add(page, text_format("%10sno query is open", ""));
	return finish(rows, code);
}

static const char *const order_columns[] = { "wall_ns", "cpu_ns", "lock_ns", "runs" };

static const char *page_order_name(enum page_order order)
{
	static const char *const names[] = { "wall", "cpu", "lock", "runs" };

	return names[order];
}

static int add_statements(struct page *page, sqlite3 *db, const struct snapshot *snapshot,
                          enum page_order order, struct widths widths, int most)
{
	char *sql = sqlite3_mprintf("SELECT * FROM (%.*s) ORDER BY %s DESC, hash",
	                            (int)strcspn(sql_live_statements, ";"), sql_live_statements,
	                            order_columns[order]);
	sqlite3_stmt *rows = sql ? snapshot_prepare(db, snapshot, sql, PAGE_SECONDS) : NULL;
	char wall[ROW_DURATION], cpu[ROW_DURATION], lock[ROW_DURATION];
	int code = SQLITE_ERROR, count = 0;

	sqlite3_free(sql);
	if (rows)
		add(page, text_format(widths.has_parts ? "%8s  %8s  %8s  %6s  last %d s, by %s"
		                                       : "%8s%.0s%.0s%.0s  last %d s, by %s",
		                      "wall", "cpu", "lock", "runs", PAGE_SECONDS, page_order_name(order)));
	while (rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *query = row_text(rows, "query");

		if (count++ >= most)
			continue;
		query += strspn(query, " \t\r\n");
		row_duration(rows, "wall_ns", wall);
		row_duration(rows, "cpu_ns", cpu);
		row_duration(rows, "lock_ns", lock);
		add_statement(page,
		              text_format(widths.has_parts ? "%8s  %8s  %8s  %6s  %s" : "%8s%.0s%.0s%.0s  %s",
		                          wall, row_number(rows, "cpu_ns") ? cpu : "",
		                          row_number(rows, "lock_ns") ? lock : "", row_text(rows, "runs"),
		                          query),
		              row_number(rows, "hash"), query);
	}
	if (!count)
		add(page, text_format("%10sno samples", ""));
	return finish(rows, code);
}

static int add_waits(struct page *page, sqlite3 *db, const struct snapshot *snapshot)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_waits, PAGE_SECONDS);
	sqlite3_str *line = sqlite3_str_new(NULL);
	char ns[ROW_DURATION], *text;
	int code = SQLITE_ERROR;

	while (rows && (code = sqlite3_step(rows)) == SQLITE_ROW)
		sqlite3_str_appendf(line, "%s%s %s",
		                    sqlite3_str_length(line) ? ", " : "waits: ", row_text(rows, "cause"),
		                    row_duration(rows, "ns", ns));
	text = sqlite3_str_finish(line);
	add(page, strdup(text ? text : "waits: none"));
	sqlite3_free(text);
	return finish(rows, code);
}

/* The size of the database's WAL, seen from outside: its name in the process's own root directory. */
static int64_t wal_bytes(const char *process, const char *database)
{
	char *path = text_format("/proc/%s/root%s-wal", process, database);
	struct stat status;
	const bool is_there =
		path && database[0] == '/' && stat(path, &status) == 0 && S_ISREG(status.st_mode);

	free(path);
	return is_there ? (int64_t)status.st_size : -1;
}

static int add_transactions(struct page *page, sqlite3 *db, const struct snapshot *snapshot, int most)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_transactions, PAGE_SECONDS);
	char age[ROW_DURATION], wal[48];
	int code = SQLITE_ERROR, count = 0;

	while (rows && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *database = row_text(rows, "database"), *name = strrchr(database, '/');
		int64_t bytes;

		if (count++ >= most)
			continue;
		if (count == 1)
			add(page, text_format("%8s  %-10s %-14s transactions", "age", "thread", "locks"));
		bytes = row_number(rows, "is_oldest_reader")
		                ? wal_bytes(row_text(rows, "process_id"), database)
		                : -1;
		sqlite3_snprintf(sizeof(wal), wal, bytes >= 0 ? " (WAL %.1f MB)" : "", (double)bytes / 1e6);
		row_duration(rows, "age_ns", age);
		add(page, text_format("%8s  %-10s %-14s %s%s: %s", age, row_text(rows, "thread_id"),
		                      row_access(rows), name ? name + 1 : database, wal,
		                      row_text(rows, "first_query")));
	}
	if (count > most)
		add(page, text_format("%10s%d more", "", count - most));
	return finish(rows, code);
}

int page_of_recording(struct page *page, sqlite3 *db, const struct live *live,
                      const struct snapshot *snapshot, enum page_order order, int rows, int columns)
{
	/* The head, the titles, the waits and the keys. */
	const int room = rows ? (rows > 9 ? rows - 9 : 1) : INT_MAX, third = rows ? room / 3 + 1 : INT_MAX;
	const struct widths widths = widths_of(rows ? columns : INT_MAX);
	int code;

	page_clear(page);
	add_head(page, live, snapshot);
	code = add_runs(page, db, snapshot, widths, third);
	if (!code)
		code = add_transactions(page, db, snapshot, third / 2 ? third / 2 : 1);
	if (!code)
		code = add_waits(page, db, snapshot);
	if (!code)
		code = add_statements(page, db, snapshot, order, widths, rows ? room : 20);
	return code;
}

/* --- a statement ------------------------------------------------------------------------------------ */

static void bind_hash(sqlite3_stmt *rows, int64_t hash)
{
	sqlite3_bind_int64(rows, sqlite3_bind_parameter_index(rows, ":hash"), hash);
}

/* The text in lines of that width, cut at any byte, because the screen blanks the halves of a character. */
static void add_text(struct page *page, const char *text, int columns)
{
	const size_t width = columns > 20 ? (size_t)columns - 1 : 20;

	for (int lines = 0; *text && lines < 6; lines++) {
		size_t size = strnlen(text, width);

		size = text[size] ? text_cut(text, size) : size;
		size = size ? size : 1;
		add(page, text_format("%.*s", (int)size, text));
		text += size;
	}
}

static int add_plan(struct page *page, sqlite3 *db, const struct snapshot *snapshot, int64_t hash)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_plan, DETAIL_SECONDS);
	char self[ROW_DURATION];
	int code = SQLITE_ERROR, count = 0;

	add(page, text_format("%8s  plan, and the time of the last %d s in each node itself", "self",
	                      DETAIL_SECONDS));
	if (rows)
		bind_hash(rows, hash);
	for (; rows && (code = sqlite3_step(rows)) == SQLITE_ROW; count++) {
		row_duration(rows, "self_ns", self);
		add(page, text_format("%8s  %*s%s", row_number(rows, "self_ns") ? self : "",
		                      (int)row_number(rows, "depth") * 2, "", row_text(rows, "detail")));
	}
	if (!count)
		add(page, text_format("%10snot known", ""));
	return finish(rows, code);
}

static int add_stacks(struct page *page, sqlite3 *db, const struct snapshot *snapshot, int64_t hash)
{
	sqlite3_stmt *rows = snapshot_prepare(db, snapshot, sql_live_stacks, DETAIL_SECONDS);
	char ns[ROW_DURATION];
	int code = SQLITE_ERROR, count = 0;

	add(page,
	    text_format("%8s  stacks of the last %d s, innermost function first", "time", DETAIL_SECONDS));
	if (rows)
		bind_hash(rows, hash);
	for (; rows && (code = sqlite3_step(rows)) == SQLITE_ROW; count++) {
		row_duration(rows, "ns", ns);
		add(page, text_format("%8s  %s", ns, row_text(rows, "stack")));
	}
	if (!count)
		add(page, text_format("%10sno samples", ""));
	return finish(rows, code);
}

int page_of_statement(struct page *page, sqlite3 *db, const struct snapshot *snapshot, int64_t hash,
                      const char *query, int columns)
{
	int code;

	page_clear(page);
	add_text(page, query, columns);
	add(page, strdup(""));
	code = add_plan(page, db, snapshot, hash);
	add(page, strdup(""));
	return code ? code : add_stacks(page, db, snapshot, hash);
}
