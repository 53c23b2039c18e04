/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof pages: which tables and indexes cause the reads and writes of the storage.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/read/page_walk.h"
#include "cmd/ui/terminal.h"
#include "sql_pages.h"
#include "sql_pages_btrees.h"
#include "sql_pages_indexes.h"
#include "sql_pages_map.h"
#include "sql_pages_statements.h"
#include "sql_pages_story.h"
#include "sql_pages_times.h"
#include "store/file/database.h"

static const char *by, *limit, *table, *database, *statement, *since, *until, *walked, *format_name;

/* What one row stands for. */
static const struct rows {
	const char *name, *sql, *title;
	int folds_last;
} kinds[] = {
	{ "btree", sql_pages_btrees, "B-trees, by the bytes read and written", 2 },
	{ "statement", sql_pages_statements, "Statements, by the bytes read and written", 2 },
	{ "index", sql_pages_indexes, "Indexes that were written", 5 },
	{ "time", sql_pages_times, "B-trees in each second", 2 },
};

static const char *kind_at(size_t index)
{
	return index < sizeof(kinds) / sizeof(kinds[0]) ? kinds[index].name : NULL;
}

static const struct command_option options[] = {
	COMMAND_WORD(
		"by", "WHAT", &by,
		"only this table: btree, statement, index (first those that no recorded statement reads) or "
		"time (b-trees in each second)",
		kind_at),
	COMMAND_OPTION("table", "TABLE", OPTION_TEXT, &table,
	               "only this table and its indexes, or this index"),
	COMMAND_OPTION("database", "FILE", OPTION_DATABASE, &database,
	               "only this database; the name without its folders is enough"),
	COMMAND_OPTION("statement", "ID", OPTION_STATEMENT, &statement,
	               "only for the statement with this id (see queries); its beginning is enough"),
	COMMAND_OPTION("since", "TIME", OPTION_TIME, &since,
	               "from TIME on: '2026-11-20 09:30', 10min (ago), end-10min"),
	COMMAND_OPTION("until", "TIME", OPTION_TIME, &until, "before TIME"),
	COMMAND_OPTION("walk", "DATABASE", OPTION_FILE, &walked,
	               "reads this file for the sizes of its b-trees, and for the owners of pages that the "
	               "recording does not know"),
	LIMIT_OPTION(&limit, "lines of each table at most (default 10; index 20; time all)"),
	OUTPUT_TEXT_FORMAT_OPTION(&format_name),
	{ 0 },
};

static int check(char **argv)
{
	int result = selection_check_time("pages", "since", since);

	(void)argv;
	return result ? result : selection_check_time("pages", "until", until);
}

static const struct rows *find_rows(void)
{
	size_t i = 0;

	while (by && kind_at(i) && strcmp(kinds[i].name, by) != 0)
		i++;
	return &kinds[i];
}

/* --- what is selected --------------------------------------------------------------------------- */

/* Makes the tables that the files of sql/read/pages_*.sql read. */
static int select_rows(sqlite3 *db, const char *path)
{
	const struct output quiet = { .table.is_bare = true };
	const struct moment_bases bases =
		selection_bases(db, "SELECT min(timestamp_ns), max(timestamp_ns) FROM page_io");
	struct time_text times[2];
	char *id = statement ? selection_complete_id(db, path, &selection_statement_ids, statement) : NULL;
	const struct sql_parameter parameters[] = {
		{ ":table", table },
		{ ":database", database },
		{ ":statement", id },
		{ ":since", selection_time(&times[0], since, &bases) },
		{ ":until", selection_time(&times[1], until, &bases) },
		{ NULL, NULL },
	};
	int result = statement && !id ? COMMAND_FAILED : page_walk(db, walked);

	if (!result)
		result = run_sql(db, sql_pages, parameters, &quiet);
	sqlite3_free(id);
	if (!result && walked &&
	    !database_number(db, "SELECT EXISTS (SELECT 1 FROM temp.page_walked_database)", 0))
		return complain(
			"pages: --walk %s: %s has no page of a database with this name; queryprof sql %s "
			"'SELECT DISTINCT database FROM page_io' lists them",
			walked, path, path);
	return result;
}

/* --- printing ------------------------------------------------------------------------------------- */

#define NAMES_MAX 48

/* Calls `print` for each row. COMMAND_FAILED after a complaint. */
static int each_row(sqlite3 *db, const char *sql, const char *width,
                    void (*print)(sqlite3_stmt *row, int index))
{
	const struct sql_parameter parameters[] = { { ":width", width },
		                                    { ":limit", limit },
		                                    { NULL, NULL } };
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &rows, NULL);

	run_sql_bind(rows, parameters);
	for (int i = 0; !code && (code = sqlite3_step(rows)) == SQLITE_ROW; i++) {
		print(rows, i);
		code = SQLITE_OK;
	}
	if (code != SQLITE_DONE)
		complain("pages: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? COMMAND_FINE : COMMAND_FAILED;
}

static void print_sentence(sqlite3_stmt *row, int index)
{
	(void)index;
	terminal_print_words(run_sql_text(row, 0), 0, 0);
	putchar('\n');
}

static void print_map_line(sqlite3_stmt *row, int index)
{
	enum { NAME, BLOCKS, SECONDS, MOST };
	const char *name = run_sql_text(row, NAME), *blocks = run_sql_text(row, BLOCKS);

	if (!index)
		printf("\nB-trees over time: %.0f s; a full block is %.3f MB\n",
		       sqlite3_column_double(row, SECONDS), sqlite3_column_double(row, MOST));
	terminal_print_padding(NAMES_MAX + 1 - terminal_print_cut(name, strlen(name), NAMES_MAX, true));
	terminal_print(blocks, strlen(blocks), 0, terminal_measure(blocks, strlen(blocks)));
	putchar('\n');
}

static int print_rows(sqlite3 *db, const struct rows *rows, enum output_format format)
{
	const struct sql_parameter parameters[] = {
		{ ":limit", limit },
		{ ":for_table", format == OUTPUT_TABLE ? "1" : "0" },
		{ NULL, NULL },
	};
	const struct output output = {
		.format = format,
		.table.folds_last = rows->folds_last,
		.table.hides_empty = true,
		.table.spare = "reads run_read_bytes journal_mb pages_written unknown_texts",
		.table.paragraphs = "written_to",
		.table.if_empty = "no index was written",
	};

	return run_sql(db, rows->sql, parameters, &output);
}

static int print_all(sqlite3 *db)
{
	const int room = terminal_room(NAMES_MAX + 1);
	char width[16];
	int result = each_row(db, sql_pages_story, NULL, print_sentence);

	snprintf(width, sizeof(width), "%d", room < 60 ? room : 60);
	for (size_t i = 0; !result && i < 2; i++) {
		printf("\n%s\n", kinds[i].title);
		result = print_rows(db, &kinds[i], OUTPUT_TABLE);
	}
	return result ? result : each_row(db, sql_pages_map, width, print_map_line);
}

static int read_file(sqlite3 *db, char **argv)
{
	const int result = select_rows(db, argv[0]);

	if (result)
		return result;
	if (!output_is_text(format_name))
		return print_rows(db, find_rows(), output_format_find(format_name));
	if (database_number(db, "SELECT EXISTS (SELECT 1 FROM temp.page_trees)", 0))
		return by ? print_rows(db, find_rows(), OUTPUT_TABLE) : print_all(db);
	printf("%s\n",
	       trace_file_is_pulled(db) ? "a file from queryprof pull has no pages"
	       : table || database || statement || since || until
	               ? "no page that matches the options was read or written"
	               : "no page of a database was read or written, the setting query_profiler_page_io "
	                 "was 0, or an older queryprof made the file");
	return COMMAND_FINE;
}

const struct command command_pages = {
	.name = "pages",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Tells for which tables and indexes the storage is read and written",
	.details = "For each database, prints the bytes written to the WAL and to the file, the bytes read, "
		   "and how "
		   "often each page was written. Then each index that takes a tenth of the writes or more: "
		   "its share, and "
		   "how many of the recorded statements read it. Then the b-trees and the statements with "
		   "the most bytes, "
		   "and the bytes of each b-tree over time, as blocks.\n\n"
		   "A b-tree is a table, an index, or a table of FTS or R-Tree. Bytes are counted where "
		   "SQLite reads and "
		   "writes its files, so the system's page cache may answer a read. The WAL counts with the "
		   "headers of its "
		   "frames. Most pages are written by the statement that ends a transaction, as COMMIT. "
		   "`pages_written` is the number of pages that were written, `times` how often each "
		   "of them. A "
		   "checkpoint counts for the statement that ran it. Which b-tree owns a page is learned "
		   "from the pages "
		   "that the program reads and writes; the share of pages whose owner is not known is "
		   "printed.\n\n"
		   "An index is read if the plan of a recorded statement searches or scans it. Statements "
		   "whose plan is not "
		   "in the file, other programs and other runs may read it, and an index that is UNIQUE or "
		   "serves a foreign "
		   "key has another use. The bytes of the rows that a statement writes are not known, so "
		   "written bytes are "
		   "per run (`run_written_bytes`). Reads by mmap (PRAGMA mmap_size) and temporary files "
		   "are not counted.\n\n"
		   "Single sums are in page_io: `queryprof sql FILE 'SELECT * FROM page_io'`.",
	.examples = "  queryprof pages app.trace\n"
		    "  queryprof pages app.trace --table orders\n"
		    "  queryprof pages app.trace --by index\n"
		    "  queryprof pages app.trace --by time --format csv\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.check = check,
	.read = read_file,
};
