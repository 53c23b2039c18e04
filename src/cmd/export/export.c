/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof export: the samples for other programs, and for the browser.
 *
 * Reads samples in the order of time, one file after the other. One writer of the format (src/export) gets
 * all of them.
 */
#include "cmd/export/reader.h"
#include "cmd/export/spans.h"
#include "cmd/file/out_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/file/helper_thread.h"
#include "cmd/file/label_history.h"
#include "cmd/file/selected_samples.h"
#include "cmd/file/selection.h"
#include "cmd/file/shown_type.h"
#include "cmd/file/trace_file.h"
#include "export/formats.h"
#include "export/resource.h"
#include "store/store.h"
#include "wire/sample_type.h"

static const char *format_name, *out_path, *compared_path, *type_name, *no_inlines, *with_plan, *native;

/* This format has neither samples nor spans, and no writer: see label_history.h. */
static const struct export_format label_history = {
	.name = "label-history",
	.summary = "trampolines, their labels and times; CSV",
};

static const struct export_format *find_format(size_t index)
{
	const struct export_format *format = export_format_at(index);
	return format ? format : index && export_format_at(index - 1) ? &label_history : NULL;
}

static const char *format_at(size_t index)
{
	const struct export_format *format = find_format(index);
	return format ? format->name : NULL;
}

static const char *root_name;

static const char *root_at(size_t index)
{
	return index ? NULL : "label:KEY";
}

static const struct command_option options[] = {
	COMMAND_WORD("format", "FORMAT", &format_name,
	             "one of the above; by default -o FILE.html is flamegraph, .pb.gz pprof, and .json json",
	             format_at),
	COMMAND_OPTION("o", "OUT", OPTION_FILE, &out_path, "the file to write, - for stdout"),
	COMMAND_OPTION("diff", "AFTER", OPTION_FILE, &compared_path,
	               "flamegraph: a second file; red takes more time there, blue less"),
	COMMAND_FLAG("no-inlines", &no_inlines, "count inlined functions as the function that contains them"),
	COMMAND_WORD("root", "label:KEY", &root_name,
	             "collapsed, speedscope: the label's value is the root of each stack", root_at),
	COMMAND_FLAG("plan", &with_plan,
	             "show the nodes of the statement's plan as frames, below those of SQLite's interpreter"),
	COMMAND_FLAG("native", &native, "show the interpreter's own frames, too, if the program's are known"),
	SHOWN_TYPE_OPTION(&type_name),
	{ 0 },
};

/* is_shown: of the selected type; is_wanted: also of other types, if the format has_times. */
struct type {
	const char *trace_type; /* NULL: not known yet */
	bool is_wanted, is_shown;
};

struct export
{
	const struct export_format *format;
	struct export_info info;
	void *writer;
	struct export_reader reader;
	struct shown_type type;
	FILE *out;
	/* A second thread passes samples to the writer, while this one reads the next samples. */
	struct helper_thread *writing;
	int64_t count, flush_at;        /* samples */
	int64_t flushed_ns, flushed_at; /* of the newest flush(); INT64_MIN: its labels are dropped */
	size_t left;                    /* labels that remained */
	/* The file that is being read. */
	const char *path;
	uint32_t side;
	sqlite3 *db;
	struct selected_samples *samples;
	VECTOR(struct type) types;   /* by number */
	bool has_samples, has_shown; /* wanted samples; shown samples */
};

/* --- reading --------------------------------------------------------------------- */

static bool is_shown(const struct export *export, const char *trace_type)
{
	const bool is_time = strcmp(trace_type, "CPU") == 0 || strcmp(trace_type, "OffCPU") == 0;

	return strcmp(trace_type, export->type.name) == 0 ||
	       (is_time && strcmp(export->type.name, SHOWN_TYPE_WALL) == 0);
}

static bool has_times(const struct export *export)
{
	return export->format->has_times && strcmp(export->type.unit, UNIT_NS) == 0;
}

/* How the samples of a type in the file are used. NULL: no memory. */
static const struct type *find_type(struct export *export, uint32_t number)
{
	struct type *type = vector_at(&export->types, number);
	const char *name = selected_samples_type(export->samples, number);

	if (!type || type->trace_type)
		return type;
	type->is_shown = is_shown(export, name);
	type->is_wanted = type->is_shown || (export->info.has_live && strcmp(name, SELECTED_LIVE) == 0) ||
	                  (has_times(export) && (strcmp(name, "CPU") == 0 || strcmp(name, "OffCPU") == 0 ||
	                                         strcmp(name, "Real") == 0));
	type->trace_type = names_keep(export->reader.names, name);
	return type->trace_type ? type : NULL;
}

static int complain_of_writing(const struct export *export, int error)
{
	return (!error || error == ENOMEM) && !ferror(export->out)
	               ? complain("out of memory")
	               : complain("%s: %s", out_file_name(out_path),
	                          error ? strerror(error) : "cannot be written");
}

/* Often enough that the tables of unfinished runs fit the processor's cache, unless too many runs last
 * longer. */
#define FLUSH_SAMPLES (1 << 16)

/* The samples between two calls of flush() can wait while it writes. */
#define WAITING 1024
#define BLOCKS (FLUSH_SAMPLES / WAITING)

#define AHEAD 8 /* samples whose stack and labels are fetched while others are written */

/* A sample without a stack stands for a flush() at its time. */
static bool write_waiting(void *context, const void *first, size_t count)
{
	struct export *export = context;
	const struct export_sample *sample = first;

	for (const struct export_sample *end = sample + count; sample < end; sample++) {
		if (end - sample > AHEAD) {
			__builtin_prefetch(sample[AHEAD].stack);
			__builtin_prefetch(sample[AHEAD].labels);
		}
		if (sample->stack && export->format->add(export->writer, sample))
			continue;
		export->left = 0;
		if (sample->stack || !export->format->flush(export->writer, sample->time_ns, &export->left))
			return false;
	}
	return true;
}

/* A command_result. */
static int wait_for_writer(struct export *export)
{
	if (!helper_thread_wait(export->writing))
		return complain_of_writing(export, errno);
	if (export->flushed_ns != INT64_MIN &&
	    !reader_labels_drop(&export->reader.labels, export->flushed_ns))
		return complain("out of memory");
	export->flushed_ns = INT64_MIN;
	return COMMAND_FINE;
}

/* Gives the writer a sample. False after a complaint. */
static bool write_sample(struct export *export, const struct export_sample *sample)
{
	struct export_sample *waiting = helper_thread_add(export->writing);

	if (waiting)
		*waiting = *sample;
	return waiting || wait_for_writer(export) == COMMAND_FINE;
}

/* Flushes if it is time. False after a complaint. */
static bool flush(struct export *export, int64_t now_ns)
{
	if (!export->format->flush || export->count < export->flush_at)
		return true;
	if (export->flushed_ns != INT64_MIN) {
		if (wait_for_writer(export) != COMMAND_FINE)
			return false;
		export->flush_at = export->flushed_at + (int64_t) export->left;
		if (export->count < export->flush_at)
			return true;
	}
	export->flushed_ns = now_ns;
	export->flushed_at = export->count;
	export->flush_at = export->count + FLUSH_SAMPLES;
	return write_sample(export, &(struct export_sample){ .time_ns = now_ns });
}

/* False after a complaint. */
static bool add_sample(void *context, const struct selected_sample *selected)
{
	struct export *export = context;
	const struct type *type = find_type(export, selected->series->type);
	const struct reader_sample read = {
		.time_ns = selected->time_ns,
		.weight = selected->weight,
		.period_ns = selected->series->period_ns,
		.size = selected->size,
		.stack = selected->stack,
		.run = selected->run->id,
		.last_ns = selected->run->id ? selected->run->last_ns : INT64_MAX,
		.thread = selected->series->thread,
		.labels = selected->labels,
		.comment = selected->run->comment,
		.call_stack = selected->call_stack ? selected->call_stack : selected->run->call_stack,
		.is_programs = selected->call_stack,
		.statement = selected->run->statement,
		.program = with_plan ? selected->run->program : 0,
		.node = with_plan && selected->node > 0 ? selected->node : 0,
		.wait = selected->wait,
		.context = selected->context,
		.span = selected->span,
		.is_truncated = selected->is_truncated,
	};
	struct export_sample sample;

	if (!type) {
		complain("out of memory");
		return false;
	}
	if (!type->is_wanted)
		return true;
	if (!flush(export, selected->time_ns) ||
	    !export_reader_sample(&export->reader, &read, export->type.unit, &sample))
		return false;
	sample.trace_type = type->trace_type;
	sample.is_other = !type->is_shown;
	export->has_samples = true;
	export->has_shown |= type->is_shown;
	progress_count(++export->count, "samples");
	return write_sample(export, &sample);
}

/* A command_result. */
static int add_samples(struct export *export)
{
	const bool has_labels = export->format->labels_read == EXPORT_LABELS_ALL;
	const unsigned columns = SELECTED_STACK | SELECTED_WAIT | SELECTED_TRUNCATED | SELECTED_CALL_STACK |
	                         (has_labels ? SELECTED_LABELS | SELECTED_CONTEXT : 0) |
	                         (root_name ? SELECTED_LABELS : 0) | (with_plan ? SELECTED_NODE : 0) |
	                         (export->format->has_links ? SELECTED_SPAN : 0);
	export->writing =
		helper_thread_start(sizeof(struct export_sample), WAITING, BLOCKS, write_waiting, export);
	if (!export->writing)
		return complain("out of memory");
	const int code = selected_samples_each(export->samples, columns, add_sample, export);
	const int result = code ? COMMAND_FINE : wait_for_writer(export);
	helper_thread_end(export->writing);
	return !code                  ? result
	       : code == SQLITE_ABORT ? COMMAND_FAILED /* after a complaint */
	                              : complain("%s: %s", export->path, sqlite3_errmsg(export->db));
}

static int complain_of_none(const struct export *export)
{
	return complain("%s: no %s samples of these queries", export->path, export->type.name);
}

/* "" if it is not known; NULL: no memory. */
static const char *find_executable(struct export *export)
{
	sqlite3_stmt *row = NULL;
	const char *path = "";

	sqlite3_prepare_v2(export->db, "SELECT executable FROM processes ORDER BY id LIMIT 1", -1, &row,
	                   NULL);
	if (row && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0))
		path = (const char *)sqlite3_column_text(row, 0);
	path = names_keep(export->reader.names, path);
	sqlite3_finalize(row);
	return path;
}

/* Takes the information that both files share from the first one. A command_result. */
static int complete_info(struct export *export)
{
	if (export->side)
		return COMMAND_FINE;
	export->info.executable = find_executable(export);
	if (export->format->add_span)
		export->info.first_ns = export_spans_first(export->db);
	return export->info.executable ? COMMAND_FINE : complain("out of memory");
}

static int add_open_file(struct export *export)
{
	export->info.is_timed = export->type.is_timed;
	export->info.has_live = export->format->has_live && strcmp(export->type.name, SELECTED_MEMORY) == 0;
	export->has_samples = export->has_shown = false;
	export->types.count = 0;
	if (complete_info(export) != COMMAND_FINE)
		return COMMAND_FAILED;
	if (!(export->samples = selected_samples_create(export->db)))
		return complain("out of memory");
	if (add_samples(export) != COMMAND_FINE)
		return COMMAND_FAILED;
	/* A file may have spans without samples. */
	return export->has_shown || (!export->has_samples && export->format->add_span)
	               ? COMMAND_FINE
	               : complain_of_none(export);
}

/* A command_result. */
static int add_file(struct export *export, const char *path, uint32_t side)
{
	export->path = path;
	export->side = side;
	export->db = selection_open(path, &selection);
	if (!export->db)
		return COMMAND_FAILED;
	progress_begin("reading");
	int result = selection_require(export->db, path, &selection);
	if (result == COMMAND_FINE)
		result = export_reader_enter(&export->reader, export->db, path, side);
	if (result == COMMAND_FINE && export->format->add)
		result = shown_type_read(&export->type, export->db)
		                 ? add_open_file(export)
		                 : shown_type_refuse(&export->type, "export");
	else if (result == COMMAND_FINE)
		result = complete_info(export);
	if (result == COMMAND_FINE && export->format->add_span)
		result = export_spans(export->db, path, export->format, export->writer);
	selected_samples_free(export->samples);
	export_reader_detach(&export->reader);
	export->samples = NULL;
	trace_file_close(export->db);
	return result;
}

/* --- writing --------------------------------------------------------------------- */

static int end_writing(struct export *export)
{
	progress_begin("writing");
	errno = 0;
	bool written = export_end(export->format, export->writer, true);
	int error = errno;
	progress_end();
	return written ? COMMAND_FINE : complain_of_writing(export, error);
}

static int write_samples(struct export *export, const char *path)
{
	export->writer = export_begin(export->format, export->out, &export->info);
	if (!export->writer)
		return complain("out of memory");
	int result = add_file(export, path, 0);
	if (result == COMMAND_FINE && compared_path)
		result = add_file(export, compared_path, 1);
	if (result == COMMAND_FINE)
		return end_writing(export);
	export_end(export->format, export->writer, false);
	return result;
}

static int write_file(struct export *export, const char *path)
{
	struct out_file out;

	if (out_file_open(&out, out_path, (const char *const[]){ path, compared_path, NULL }) != COMMAND_FINE)
		return COMMAND_FAILED;
	export->out = out.stream;
	int result = write_samples(export, path);
	int closed = out_file_close(&out, result == COMMAND_FINE);
	return result ? result : closed;
}

static int export_files(const struct export_format *format, const char *path)
{
	struct export export = {
		.format = format,
		.reader = { .labels = { .root_key = root_name ? strchr(root_name, ':') + 1 : NULL,
		                        .has_links = format->has_links,
		                        .labels_read = format->labels_read },
		            .host = native ? HOST_WITH_CALL_STACK : HOST_IS_CALL_STACK },
		.type = shown_type_of(type_name),
		.flush_at = FLUSH_SAMPLES,
		.flushed_ns = INT64_MIN,
	};
	export.info = (struct export_info){
		.trace_type = export.type.name,
		.unit = export.type.unit,
		.title = path,
		.compared = compared_path,
		.inlines = !no_inlines,
	};
	int result = export_reader_begin(&export.reader, !no_inlines);

	if (result == COMMAND_FINE)
		result = write_file(&export, path);
	export_reader_free(&export.reader);
	vector_free(&export.types);
	return result;
}

/* --- the command line ------------------------------------------------------------ */

static void print_formats(FILE *to)
{
	const struct export_format *format;

	fputs("formats, and the unit of their numbers:\n", to);
	for (size_t i = 0; (format = find_format(i)); i++)
		if (format->missing)
			fprintf(to, "  %-12s not in this build: %s\n", format->name, format->missing);
		else
			fprintf(to, "  %-12s %s\n", format->name, format->summary);
}

static bool takes_root(const struct export_format *format)
{
	return format->has_root;
}

static bool takes_second_file(const struct export_format *format)
{
	return format->compares;
}

static bool takes_samples(const struct export_format *format)
{
	return format->add;
}

static bool takes_runs(const struct export_format *format)
{
	return format->add || format->add_span;
}

/* False after a complaint: the option is given, but the format does not use it. */
static bool check_option(const char *option, bool is_given, const struct export_format *format,
                         bool (*applies)(const struct export_format *))
{
	char names[256] = "";
	size_t used = 0;

	if (!is_given || applies(format))
		return true;
	for (size_t i = 0; find_format(i); i++)
		if (applies(find_format(i)) && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
			                         format_at(i));
	complain("export: --%s does not apply to %s, only to %s", option, format->name, names);
	return false;
}

static bool check_options(const struct export_format *format)
{
	bool fine = check_option("root", root_name, format, takes_root) &&
	            check_option("diff", compared_path, format, takes_second_file) &&
	            check_option("type", type_name, format, takes_samples) &&
	            check_option("plan", with_plan, format, takes_samples) &&
	            check_option("native", native, format, takes_samples) &&
	            check_option("no-inlines", no_inlines, format, takes_samples);

	for (const struct command_option *option = selection_options; fine && option->name; option++)
		fine = check_option(option->name, *option->to, format, takes_runs);
	return fine;
}

/* The format for a file's name; NULL: several formats use its extension, or none does. */
static const char *format_of_file(const char *path)
{
	static const struct {
		const char *end, *format;
	} ends[] = {
		{ ".html", "flamegraph" },
		{ ".pb.gz", "pprof" },
		{ ".json", "json" },
	};

	for (size_t i = 0; path && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strlen(path) > strlen(ends[i].end) &&
		    strcmp(path + strlen(path) - strlen(ends[i].end), ends[i].end) == 0)
			return ends[i].format;
	return NULL;
}

/* NULL after a usage error. */
static const struct export_format *check_command_line(void)
{
	const struct export_format *format = NULL;

	if (!format_name)
		format_name = format_of_file(out_path);

	for (size_t i = 0; format_name && !format && find_format(i); i++)
		if (strcmp(format_at(i), format_name) == 0)
			format = find_format(i);

	if (!format)
		complain("export: --format is missing; only -o FILE.html, FILE.pb.gz and FILE.json imply "
		         "one (see queryprof export --help)");
	else if (!out_path)
		complain("export: -o is missing; expected the file to write, or - for stdout");
	else if (format->is_binary && strcmp(out_path, "-") == 0 && isatty(STDOUT_FILENO))
		complain("export: %s cannot be shown on a terminal: name a file with -o", format->name);
	else if (!check_options(format))
		return NULL;
	else if ((format == &export_otlp || format == &export_otlp_traces) && resource_complaint())
		complain("OTEL_RESOURCE_ATTRIBUTES is %s: %s", getenv("OTEL_RESOURCE_ATTRIBUTES"),
		         resource_complaint());
	else if (selection_check("export", &selection) == COMMAND_FINE)
		return format;
	return NULL;
}

static int run(int argc, char **argv)
{
	const struct export_format *format = check_command_line();

	(void)argc;
	if (!format)
		return COMMAND_MISUSED;
	if (format == &label_history)
		return label_history_export(argv[0], out_path);
	if (format->missing)
		return complain("export: the format %s is not in this build: %s", format->name,
		                format->missing);
	return export_files(format, argv[0]);
}

const struct command command_export = {
	.name = "export",
	.arguments = "[FILE] -o OUT [--format FORMAT] [OPTION]...",
	.summary = "Writes the samples for other programs and the browser",
	.details =
		"The flamegraph page is one file and loads nothing from the network. Below its root are "
		"the statements, and above each statement its stacks. Inverted, it has the functions that "
		"used the time, and above each its callers. The host's frames before SQLite are one frame "
		"until you click it, and queryprof's own frames are hidden. If samples have labels, you "
		"can select one, and the values of a label can be the level below the root. The colour of "
		"a module is the same on every page. A search also finds frames inside the host's folded "
		"frame. If the file has samples of several times, you can select CPU, wall or waits. The "
		"page's address contains the selection, the search and the zoom.\n\n"
		"With --diff the page compares two files: red takes more time in the second file, blue "
		"less. A frame is as wide as its time in both. Functions are the same if their name and "
		"their module's name are. If the files contain different amounts of work, compare shares.\n\n"
		"If the call stack of a Python, Ruby, PHP, Perl or node program is known, stacks contain its "
		"frames as `function (file:line)`, in place of the interpreter's frames. They are the frames "
		"of the call in which the query had its first sample, at most 32. If SQLite calls the "
		"program, and the program calls SQLite again, the stack remains as it was sampled.\n\n"
		"Collapsed stacks count sampling periods, which flame graph tools call samples. If "
		"periods differ, the number counts the longest time that divides all of them. Samples "
		"that no timer took, and wall time made of CPU time and waits, have the type's unit, such "
		"as ns or bytes.\n\n"
		"If options select runs, spans are those of the traces that contain a selected run or its "
		"samples. Perfetto distinguishes processes by their ids: if two have the same id, the "
		"later one gets a number from 4194304 on, and its name contains its id and host.\n\n"
		"JSON has shared data in tables (modules, frames, stacks, statements, labels). Samples "
		"refer to them by position, from 0.",
	.print_details = print_formats,
	.examples = "  queryprof export app.trace -o app.pb.gz\n"
		    "  go tool pprof -top -tagfocus=query_id=0193a5b2-77c1 app.pb.gz\n"
		    "  queryprof export app.trace -o app.html\n"
		    "  queryprof export app.trace --format flamegraph --plan -o plans.html\n"
		    "  queryprof export a.trace --diff b.trace --format flamegraph -o ab.html\n"
		    "  queryprof export app.trace --format json -o - --like 'FROM orders' |\n"
		    "    jq -r '. as {$labels, $stacks, $frames} | .samples[] | [.value,\n"
		    "        $labels[.labels].query_id,\n"
		    "        $frames[$stacks[.stack].frames[0]].lines[0].function] | @tsv'\n",
	.options = options,
	.shared = selection_options,
	.reads_file = true,
	.arguments_max = 1,
	.run = run,
};
