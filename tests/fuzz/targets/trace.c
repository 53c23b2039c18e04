/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: a foreign trace file, read by a subcommand in this process.
 *
 * An input: two bytes that choose a command line, then changes of a sound file (trace.sql). Each change has
 * two bytes that choose a column, and the new value of all its rows (value.h). One past the columns, the
 * value is a text whose first four bytes are the offset in the file at which its rest is written.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../src/cmd/file/selection.h"
#include "../../../src/cmd/line/options.h"
#include "../../../src/cmd/ui/limits.h"
#include "store/file/database.h"
#include "store/file/schema.h"
#include "target.h"
#include "value.h"

#define NAME "damaged.trace"
#define CHANGES_MAX 16
#define WORDS_MAX 10
#define KEPT_MAX 800 /* values of options, columns of the file */

static const char *const lines[][WORDS_MAX] = {
	{ "queries", NAME },
	{ "queries", NAME, "--by", "off", "--format", "json" },
	{ "queries", NAME, "--by", "label:tenant" },
	{ "queries", NAME, "--runs" },
	{ "queries", NAME, "--regressed" },
	{ "report", NAME },
	{ "report", NAME, "--full", "--type", "wall" },
	{ "report", NAME, "--type", "offcpu", "--label", "tenant=acme" },
	{ "report", NAME, "--query", "0193a5b2-77c1-7aaa" },
	{ "report", NAME, "--type", "memory", "--since", "end-10min", "--last", "2" },
	{ "report", NAME, "--type", "live" },
	{ "plan", NAME, "--opcodes" },
	{ "plan", NAME, "orders", "--type", "wall" },
	{ "locks", NAME, "--format", "line" },
	{ "wal", NAME },
	{ "wal", NAME, "--format", "json" },
	{ "sql", NAME,
	  "SELECT * FROM checkpoints; SELECT * FROM wal_log; SELECT * FROM checkpoint_frames; "
	  "SELECT * FROM open_statements; SELECT * FROM connections; SELECT * FROM page_io" },
	{ "traces", NAME, "--by", "cpu" },
	{ "traces", NAME, "--by", "wait", "--like", "check", "--format", "csv" },
	{ "trace", NAME, "4bf92f3577b34da6", "--samples" },
	{ "trace", NAME, "4bf92f3577b34da6", "--all" },
	{ "diff", NAME, NAME },
	{ "diff", NAME, "--at", "end-1s", "--type", "wall" },
	{ "export", NAME, "--format", "collapsed", "-o", "-", "--root", "label:tenant" },
	{ "export", NAME, "--format", "pprof", "-o", "-" },
	{ "export", NAME, "--format", "pprof", "--type", "memory", "-o", "-" },
	{ "export", NAME, "--format", "speedscope", "-o", "-", "--plan" },
	{ "export", NAME, "--format", "json", "-o", "-" },
	{ "export", NAME, "--format", "perfetto", "-o", "-" },
	{ "export", NAME, "--format", "otlp", "-o", "-" },
	{ "export", NAME, "--format", "otlp-traces", "-o", "-" },
	{ "export", NAME, "--format", "label-history", "-o", "-" },
	{ "sql", NAME, "SELECT * FROM trace_log; SELECT * FROM query_log; SELECT * FROM span_log" },
	{ "sql", NAME,
	  "SELECT traceToText(trace) FROM trace_log; SELECT flameGraph(trace, weight) FROM trace_log" },
	{ "sql", NAME,
	  "SELECT * FROM lock_waits; SELECT * FROM transaction_log; SELECT * FROM statement_stats",
	  "--format", "line" },
	{ "sql", NAME, "SELECT * FROM top_functions; SELECT * FROM top_stacks; SELECT * FROM label_history" },
};
#define LINES (sizeof(lines) / sizeof(lines[0]))

static uint8_t *sound; /* the sound file */
static size_t sound_size;
static char *updates[KEPT_MAX];
static size_t update_count;

/* The options' initial values, because a command line changes them. */
static struct {
	const char **to, *value;
} kept[KEPT_MAX];
static size_t kept_count;

static FILE *nowhere;

size_t fuzz_choices(void)
{
	return LINES;
}

static void must(bool is_so, const char *what)
{
	if (!is_so) {
		fprintf(stderr, "trace: %s\n", what);
		exit(2);
	}
}

static void keep_options(const struct command_option *option)
{
	for (; option && option->name; option++)
		if (option->to) {
			must(kept_count < KEPT_MAX, "too many options");
			kept[kept_count].to = option->to;
			kept[kept_count++].value = *option->to;
		}
}

static sqlite3 *open_memory(void)
{
	sqlite3 *db = NULL;

	must(!sqlite3_open(":memory:", &db), "no memory");
	return db;
}

static sqlite3 *open_sound(void)
{
	sqlite3 *db = open_memory();
	uint8_t *copy = sqlite3_malloc64(sound_size);

	must(copy != NULL, "no memory");
	memcpy(copy, sound, sound_size);
	must(!sqlite3_deserialize(db, "main", copy, (int64_t)sound_size, (int64_t)sound_size,
	                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE),
	     "sqlite3_deserialize()");
	return db;
}

static char *read_rows(void)
{
	FILE *file = fopen(QUERYPROF_FUZZ_ROWS, "re");
	char *text = NULL;
	size_t room = 0;

	must(file && getdelim(&text, &room, 0, file) > 0, QUERYPROF_FUZZ_ROWS);
	fclose(file);
	return text;
}

static void make_sound(void)
{
	static const char columns[] = "SELECT format('UPDATE OR IGNORE \"%w\" SET \"%w\" = ?', t.name, "
				      "c.name) FROM pragma_table_list t, "
				      "pragma_table_info(t.name) c WHERE t.type = 'table' AND t.schema = "
				      "'main' ORDER BY t.name, c.cid";
	static const char views[] =
		"PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE type = 'view'";
	sqlite3 *db = open_memory();
	char *rows = read_rows(), *head;
	sqlite3_stmt *stmt;
	sqlite3_int64 size;

	must(!schema_make_tables(db), sqlite3_errmsg(db));
	must(!sqlite3_exec(db, rows, NULL, NULL, NULL), sqlite3_errmsg(db));
	/* Drops the views, because commands create their own. Views are most of a file's schema, and would
	 * take most of the time. */
	must(!sqlite3_exec(db, views, NULL, NULL, NULL), sqlite3_errmsg(db));
	head = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION_ID,
	                       STORE_SCHEMA_VERSION);
	must(!sqlite3_exec(db, head, NULL, NULL, NULL), sqlite3_errmsg(db));
	must(!sqlite3_prepare_v2(db, columns, -1, &stmt, NULL), sqlite3_errmsg(db));
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		must(update_count < KEPT_MAX, "too many columns");
		updates[update_count++] = strdup((const char *)sqlite3_column_text(stmt, 0));
	}
	sqlite3_finalize(stmt);
	sound = sqlite3_serialize(db, "main", &size, 0);
	must(sound && update_count, "sqlite3_serialize()");
	sound_size = (size_t)size;
	sqlite3_free(head);
	free(rows);
	sqlite3_close(db);
}

static void change_column(sqlite3 *db, const char *update, struct value value)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, update, -1, &stmt, NULL)) {
		free(value.text);
		return;
	}
	bind_value(stmt, 1, value);
	sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

static void write_file(const uint8_t *bytes, size_t size)
{
	FILE *file = fopen(NAME, "we");

	must(file && fwrite(bytes, 1, size, file) == size && !fclose(file), NAME);
}

static void damage_bytes(uint8_t *bytes, size_t size, const struct value *value)
{
	uint32_t at;

	if (value->size <= sizeof(at))
		return;
	memcpy(&at, value->text, sizeof(at));
	for (size_t i = sizeof(at); i < value->size; i++)
		bytes[(at + i - sizeof(at)) % size] = (uint8_t)value->text[i];
}

static void make_damaged(const uint8_t *data, size_t size)
{
	struct value damages[CHANGES_MAX];
	size_t damage_count = 0;
	sqlite3 *db = open_sound();
	sqlite3_int64 bytes = 0;

	for (int i = 0; i < CHANGES_MAX && size > 2; i++) {
		size_t column = (data[0] | data[1] << 8) % (update_count + 1);
		struct value value;

		data += 2;
		size -= 2;
		value = take_value(&data, &size);
		if (column < update_count)
			change_column(db, updates[column], value);
		else
			damages[damage_count++] = value;
	}
	uint8_t *file = sqlite3_serialize(db, "main", &bytes, 0);
	must(file && bytes, "sqlite3_serialize()");
	while (damage_count) {
		damage_bytes(file, (size_t)bytes, &damages[--damage_count]);
		free(damages[damage_count].text);
	}
	write_file(file, (size_t)bytes);
	sqlite3_free(file);
	sqlite3_close(db);
}

/* Discards the command's output. */
static int run(const char *const *line)
{
	FILE *output = stdout, *errors = stderr;
	char *words[WORDS_MAX + 1] = { NULL };
	bool wants_help = false;
	int count = 0, result;

	for (; count < WORDS_MAX && line[count]; count++)
		words[count] = (char *)line[count];
	stdout = stderr = nowhere;
	const struct command *command = command_find(words[0]);
	count--;
	result = options_read(command, &count, words + 1, &wants_help);
	if (result == COMMAND_FINE)
		result = command_run(command, count, words + 1);
	fflush(nowhere);
	stdout = output;
	stderr = errors;
	for (size_t i = 0; i < kept_count; i++)
		*kept[i].to = kept[i].value;
	return result;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct command *command;

	(void)argc, (void)argv;
	memory_limit_set();
	nowhere = fopen("/dev/null", "we");
	must(nowhere != NULL, "/dev/null");
	for (size_t i = 0; (command = command_at(i)); i++) {
		keep_options(command->options);
		keep_options(command->shared);
	}
	make_sound();
	/* With an invalid command line, the target would never read a file. */
	for (size_t i = 0; i < LINES; i++) {
		write_file(sound, sound_size);
		must(run(lines[i]) == COMMAND_FINE, lines[i][0]);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	make_damaged(data + 2, size - 2);
	run(lines[(data[0] | data[1] << 8) % LINES]);
	return 0;
}
