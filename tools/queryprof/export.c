/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof export: the samples for other programs, and for the browser.
 *
 * Reads samples in the order of time. Stacks and labels, which samples name by number, are
 * read once each. The writer of the format (src/export) gets the whole.
 */
#include "command.h"
#include "out_file.h"
#include "progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "export/names.h"
#include "export/formats.h"
#include "sql_export_labels.h"
#include "run_sql.h"
#include "selection.h"
#include "shown_type.h"
#include "sql_export_samples.h"
#include "store/store.h"
#include "trace_file.h"
#include "trace_frames.h"

static const char *format_name, *out_path, *type_name, *no_inlines;

static const char *format_at(size_t index)
{
	const struct export_format *format = export_format_at(index);
	return format ? format->name : NULL;
}

static const struct command_option options[] = {
	{ .name = "format",
	  .value = "FORMAT",
	  .to = &format_name,
	  .kind = OPTION_WORD,
	  .word_at = format_at,
	  .help = "one of those above" },
	{ .name = "o",
	  .value = "OUT",
	  .to = &out_path,
	  .kind = OPTION_FILE,
	  .help = "the file to write, - for stdout" },
	{ .name = "no-inlines",
	  .to = &no_inlines,
	  .help = "inlined functions count as the one that they were inlined into" },
	SHOWN_TYPE_OPTION(&type_name),
	{ 0 },
};

/* --- stacks and labels ------------------------------------------------ */

struct labels_entry {
	struct hash key;
	struct export_labels *labels;
};

struct stack_entry {
	struct hash key;
	const struct export_stack *stack;
};

struct export
{
	const char *path; /* of the trace file */
	sqlite3 *db;
	sqlite3_stmt *samples, *labels_of, *stack_of;
	struct names *names;
	struct hash_table labels, stacks;
	struct shown_type type;
	int64_t weight, value; /* of all samples so far */
	int64_t count;         /* samples */
};

static const char *column_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

static int complain_of_memory(void)
{
	return complain("out of memory");
}

/* NULL after a complaint. */
static const struct export_labels *find_labels(struct export *export, int64_t query, int64_t thread)
{
	uint64_t words[] = { (uint64_t)query, (uint64_t)thread };
	struct hash key = hash_words(words, 2);
	struct labels_entry *entry = hash_table_find(&export->labels, key);

	if (entry)
		return entry->labels;
	struct export_labels *labels = calloc(1, sizeof(*labels));
	entry = labels ? hash_table_add(&export->labels, key) : NULL;
	if (!entry) {
		free(labels);
		complain_of_memory();
		return NULL;
	}
	entry->labels = labels;
	sqlite3_stmt *row = export->labels_of;
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":query"), query);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":thread"), thread);
	if (sqlite3_step(row) != SQLITE_ROW) {
		complain("%s: %s", export->path, sqlite3_errmsg(export->db));
		sqlite3_reset(row);
		return NULL;
	}
	*labels = (struct export_labels){
		.number = (uint32_t) export->labels.count - 1,
		.query_id = names_keep(export->names, column_text(row, 0)),
		.thread = names_keep(export->names, column_text(row, 1)),
		.database = names_keep(export->names, column_text(row, 2)),
		.statement = names_keep(export->names, column_text(row, 3)),
		.statement_hash = sqlite3_column_int64(row, 4),
	};
	sqlite3_reset(row);
	if (labels->query_id && labels->thread && labels->database && labels->statement)
		return labels;
	complain_of_memory();
	return NULL;
}

/* NULL after a complaint. */
static const struct export_stack *find_stack(struct export *export, int64_t id, bool is_truncated)
{
	uint64_t words[] = { (uint64_t)id, is_truncated };
	struct hash key = hash_words(words, 2);
	struct stack_entry *entry = hash_table_find(&export->stacks, key);

	if (entry)
		return entry->stack;
	sqlite3_stmt *row = export->stack_of;
	sqlite3_bind_int64(row, 1, id);
	/* A sample whose stack is not there still took its time. */
	int code = sqlite3_step(row);
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		complain("%s: %s", export->path, sqlite3_errmsg(export->db));
		sqlite3_reset(row);
		return NULL;
	}
	bool bad = false;
	const struct export_stack *stack = names_stack(
		export->names, code == SQLITE_ROW ? column_text(row, 0) : "[]", is_truncated, &bad);
	sqlite3_reset(row);
	if (bad)
		complain("%s: stack %lld is no array of addresses", export->path, (long long)id);
	else if (!stack || !(entry = hash_table_add(&export->stacks, key)))
		complain_of_memory();
	if (bad || !stack || !entry)
		return NULL;
	entry->stack = stack;
	return stack;
}

static void free_labels(void *context, void *entry)
{
	(void)context;
	free(((struct labels_entry *)entry)->labels);
}

/* --- reading and writing --------------------------------------------------------- */

/* False after a complaint. */
static bool open_export(struct export *export, const char *path, sqlite3 *db)
{
	const struct sql_parameter parameters[] = { { ":trace_type", export->type.name }, { NULL, NULL } };

	export->labels = (struct hash_table)HASH_TABLE_OF(struct labels_entry, SIZE_MAX);
	export->stacks = (struct hash_table)HASH_TABLE_OF(struct stack_entry, SIZE_MAX);
	export->names = trace_frames_names(!no_inlines);
	if (!export->names) {
		complain_of_memory();
		return false;
	}
	if (sqlite3_prepare_v2(db, sql_export_samples, -1, &export->samples, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, sql_export_labels, -1, &export->labels_of, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT trace FROM stacks WHERE id = ?", -1, &export->stack_of, NULL) !=
	            SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
		return false;
	}
	run_sql_bind(export->samples, parameters);
	return true;
}

static void close_export(struct export *export)
{
	sqlite3_finalize(export->samples);
	sqlite3_finalize(export->labels_of);
	sqlite3_finalize(export->stack_of);
	hash_table_each(&export->labels, free_labels, NULL);
	hash_table_free(&export->labels);
	hash_table_free(&export->stacks);
	names_free(export->names);
}

/* No writer has to look out for sums that overflow: the largest, of all samples, is
 * formed here. False after a complaint. */
static bool check_numbers(struct export *export, struct export_sample *sample)
{
	/* A product that is too large is no integer. */
	if (sample->weight >= 0 && sample->period_ns >= 0 && sample->value >= 0 &&
	    sqlite3_column_type(export->samples, 3) == SQLITE_INTEGER &&
	    !__builtin_add_overflow(export->weight, sample->weight, &export->weight) &&
	    !__builtin_add_overflow(export->value, sample->value, &export->value))
		return true;
	complain("%s: weight %lld, period %lld ns, value %s %s: no sample has such numbers", export->path,
	         (long long)sample->weight, (long long)sample->period_ns, column_text(export->samples, 3),
	         export->type.unit);
	return false;
}

/* From the first row, which has been read, to the last. False after a complaint. */
static bool add_samples(struct export *export, const struct export_format *format, void *writer)
{
	sqlite3_stmt *row = export->samples;
	int code;

	do {
		struct export_sample sample = {
			.time_ns = sqlite3_column_int64(row, 0),
			.weight = sqlite3_column_int64(row, 1),
			.period_ns = sqlite3_column_int64(row, 2),
			.value = sqlite3_column_int64(row, 3),
			.stack = find_stack(export, sqlite3_column_int64(row, 4), sqlite3_column_int(row, 5)),
		};
		if (!sample.stack || !check_numbers(export, &sample))
			return false;
		sample.labels =
			find_labels(export, sqlite3_column_int64(row, 6), sqlite3_column_int64(row, 7));
		if (!sample.labels)
			return false;
		if (!format->add(writer, &sample)) {
			complain_of_memory();
			return false;
		}
		progress_count(++export->count, "samples");
	} while ((code = sqlite3_step(row)) == SQLITE_ROW);
	if (code != SQLITE_DONE)
		complain("%s: %s", export->path, sqlite3_errmsg(export->db));
	return code == SQLITE_DONE;
}

/* "" when it is not known; NULL: no memory. */
static const char *find_executable(struct export *export)
{
	sqlite3_stmt *row = NULL;
	const char *path = "";

	sqlite3_prepare_v2(export->db, "SELECT executable FROM processes ORDER BY id LIMIT 1", -1, &row,
	                   NULL);
	if (row && sqlite3_step(row) == SQLITE_ROW)
		path = column_text(row, 0);
	path = names_keep(export->names, path);
	sqlite3_finalize(row);
	return path;
}

static int write_samples(struct export *export, const struct export_format *format, FILE *out)
{
	const char *executable = find_executable(export);
	const struct export_info info = {
		.trace_type = export->type.name,
		.unit = export->type.unit,
		.is_timed = export->type.clock,
		.title = export->path,
		.executable = executable,
		.inlines = !no_inlines,
	};
	void *writer = executable ? export_begin(format, out, &info) : NULL;

	if (!writer)
		return complain_of_memory();
	progress_begin("reading");
	bool complete = add_samples(export, format, writer);
	if (!complete) {
		export_end(format, writer, false);
		return COMMAND_FAILED;
	}
	progress_begin("writing");
	errno = 0;
	bool written = export_end(format, writer, true);
	int error = errno;
	progress_end();
	if (written)
		return COMMAND_FINE;
	if (!error && !ferror(out))
		return complain_of_memory();
	return complain("%s: %s", out_file_name(out_path), error ? strerror(error) : "cannot be written");
}

/* The exported file must not be written over, by any of its names. */
static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int write_file(struct export *export, const struct export_format *format)
{
	struct out_file out;

	if (strcmp(out_path, "-") != 0 && is_same_file(out_path, export->path))
		return complain("%s: is the file that is exported", out_path);
	if (out_file_open(&out, out_path) != COMMAND_FINE)
		return COMMAND_FAILED;
	int result = write_samples(export, format, out.stream);
	int closed = out_file_close(&out, result == COMMAND_FINE);
	return result ? result : closed;
}

static int export_file(const char *path, sqlite3 *db, const struct export_format *format)
{
	struct export export = { .path = path, .db = db, .type = shown_type_of(type_name) };
	int result = COMMAND_FAILED;

	if (!shown_type_read(&export.type, db))
		return shown_type_refuse(&export.type, "export");
	if (open_export(&export, path, db)) {
		int code = sqlite3_step(export.samples);
		if (code == SQLITE_ROW)
			result = write_file(&export, format);
		else if (code == SQLITE_DONE)
			complain("%s: no %s samples of these queries", path, export.type.name);
		else
			complain("%s: %s", path, sqlite3_errmsg(db));
	}
	close_export(&export);
	return result;
}

/* --- the command line ------------------------------------------------------------ */

static void print_formats(FILE *to)
{
	const struct export_format *format;

	fputs("formats, and the unit of their numbers:\n", to);
	for (size_t i = 0; (format = export_format_at(i)) != NULL; i++)
		if (format->missing)
			fprintf(to, "  %-12s not in this build: %s\n", format->name, format->missing);
		else
			fprintf(to, "  %-12s %s\n", format->name, format->summary);
}

static const struct export_format *find_format(void)
{
	for (size_t i = 0; format_name && format_at(i); i++)
		if (strcmp(format_at(i), format_name) == 0)
			return export_format_at(i);
	return NULL;
}

/* NULL after a complaint about the command line. */
static const struct export_format *check_command_line(void)
{
	const struct export_format *format = find_format();

	if (!format)
		complain("export: --format is missing (see queryprof export --help)");
	else if (!out_path)
		complain("export: -o is missing: the file to write, - for stdout");
	else if (format->is_binary && strcmp(out_path, "-") == 0 && isatty(STDOUT_FILENO))
		complain("export: %s is not for terminals: give -o a file", format->name);
	else if (selection_check("export", &selection) == COMMAND_FINE)
		return format;
	return NULL;
}

static int run(int argc, char **argv)
{
	(void)argc;
	const struct export_format *format = check_command_line();
	if (!format)
		return COMMAND_MISUSED;
	if (format->missing)
		return complain("export: the format %s is not in this build: %s", format->name,
		                format->missing);
	sqlite3 *db = selection_open(argv[0], &selection);
	if (!db)
		return COMMAND_FAILED;
	int result = selection_require(db, argv[0], &selection);
	if (!result)
		result = export_file(argv[0], db, format);
	trace_file_close(db);
	return result;
}

const struct command command_export = {
	.name = "export",
	.arguments = "[FILE] --format FORMAT -o OUT [OPTION]...",
	.summary = "Writes the samples for other programs and the browser",
	.print_details = print_formats,
	.examples = "  queryprof export app.trace --format pprof -o app.pb.gz\n"
		    "  go tool pprof -top -tagfocus=query_id=0193a5b2-77c1 app.pb.gz\n"
		    "  queryprof export app.trace --format flamegraph -o app.html\n"
		    "  queryprof export app.trace --format json -o - --like 'FROM orders'\n",
	.options = options,
	.shared = selection_options,
	.reads_trace = true,
	.arguments_max = 1,
	.run = run,
};
