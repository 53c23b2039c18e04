/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the columns of store/file/columns.h into sql/schema/store_schema.sql: a program of the build.
 *
 *   make_schema FILE           rewrites the file
 *   make_schema --check FILE   fails where the file differs from the lists
 *
 * A region of the file begins with the line "-- columns.h: NAME" and ends with the line
 * "-- end of columns.h"; all other lines stay as they are.
 */
#include "store/file/columns.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_MARK "\t-- columns.h: "
#define END_MARK "\t-- end of columns.h\n"

struct line {
	const char *name, *text; /* text: SQL after the name of a table's column; that of a view's; a join */
};

#define NOTHING(...)
#define DEFINE_STORED(name, type, definition, flags, value) { #name, #type " " definition },
#define DEFINE_FILED(name, type, definition, value) { #name, #type " " definition },
static const struct line samples[] = { TRACE_LOG_COLUMNS(DEFINE_STORED, DEFINE_FILED, NOTHING,
	                                                 NOTHING){ 0 } };
static const struct line queries[] = { QUERY_LOG_COLUMNS(DEFINE_STORED, DEFINE_FILED, NOTHING){ 0 } };

#define SELECT_SHOWN(name, type, flags, expression) { #name, expression },
#define SELECT_SAMPLES(name, type, definition, flags, value) { #name, "s." #name },
#define SELECT_QUERIES(name, type, definition, flags, value) { #name, "q." #name },
static const struct line trace_log[] = { TRACE_LOG_COLUMNS(SELECT_SAMPLES, NOTHING, SELECT_SHOWN,
	                                                   NOTHING){ 0 } };
static const struct line query_log[] = { QUERY_LOG_COLUMNS(SELECT_QUERIES, NOTHING, SELECT_SHOWN){ 0 } };

#define WRITE_JOIN(text) { text, "LEFT JOIN" },
static const struct line query_log_joins[] = { QUERY_LOG_JOINS(WRITE_JOIN){ 0 } };

static const struct line label_history[] = { LABEL_HISTORY_COLUMNS(SELECT_SHOWN){ 0 } };

#define SELECT_SHOWN_COUNTERS(name, type, expression, value) { #name, expression },
#define DEFINE_KEY(name, type, value) { #name, #type " NOT NULL" },
#define DEFINE_COUNTER(name, type, value) { #name, #type " " COLUMN_ZERO },
#define DEFINE_LEAST(name, type, value) { #name, #type },
#define DEFINE_PART(i) { "runs_" #i, "INTEGER " COLUMN_ZERO },
#define SELECT_COUNTERS(name, type, value) { #name, "c." #name },
static const struct line statement_counters[] = { STATEMENT_STATS_COLUMNS(
	DEFINE_KEY, DEFINE_FILED, DEFINE_COUNTER, DEFINE_PART, DEFINE_LEAST, DEFINE_COUNTER, NOTHING){ 0 } };
static const struct line statement_stats[] = { STATEMENT_STATS_COLUMNS(
	SELECT_COUNTERS, NOTHING, SELECT_COUNTERS, NOTHING, SELECT_COUNTERS, SELECT_COUNTERS,
	SELECT_SHOWN_COUNTERS){ 0 } };

static const struct region {
	const char *name;
	const struct line *lines;
	enum { TABLE, VIEW, JOINS } kind;
	bool goes_on; /* columns written by hand follow */
} regions[] = {
	{ "samples", samples, TABLE, false },
	{ "queries", queries, TABLE, false },
	{ "trace_log", trace_log, VIEW, true },
	{ "query_log", query_log, VIEW, false },
	{ "query_log_joins", query_log_joins, JOINS, false },
	{ "statement_counters", statement_counters, TABLE, true },
	{ "statement_stats", statement_stats, VIEW, false },
	{ "label_history", label_history, VIEW, false },
};

static void print_region(FILE *out, const struct region *region)
{
	for (const struct line *line = region->lines; line->name; line++) {
		const char *comma = line[1].name || region->goes_on ? "," : "";

		if (region->kind == JOINS)
			fprintf(out, "%s %s\n", line->text, line->name);
		else if (region->kind == VIEW)
			fprintf(out, "\t%s AS %s%s\n", line->text, line->name, comma);
		else
			fprintf(out, "\t%-18s %s%s\n", line->name, line->text, comma);
	}
}

static const struct region *find_region(const char *line)
{
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
		if (strncmp(line, BEGIN_MARK, strlen(BEGIN_MARK)) == 0 &&
		    strncmp(line + strlen(BEGIN_MARK), regions[i].name, strlen(regions[i].name)) == 0 &&
		    line[strlen(BEGIN_MARK) + strlen(regions[i].name)] == '\n')
			return &regions[i];
	return NULL;
}

/* Copies the file to both streams, to `after` with the lists' columns. Returns the number
 * of regions. */
static size_t copy(FILE *in, FILE *before, FILE *after)
{
	char line[4096];
	bool in_region = false;
	size_t found = 0;

	while (fgets(line, sizeof(line), in)) {
		const struct region *region = find_region(line);

		in_region = in_region && strcmp(line, END_MARK) != 0;
		fputs(line, before);
		if (!in_region)
			fputs(line, after);
		if (region) {
			print_region(after, region);
			in_region = true;
			found++;
		}
	}
	return in_region ? 0 : found;
}

static bool write_file(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");
	bool written = file && fwrite(text, 1, size, file) == size;

	return file && fclose(file) == 0 && written;
}

int main(int argc, char **argv)
{
	bool checks = argc == 3 && strcmp(argv[1], "--check") == 0;
	const char *path = argv[argc - 1];
	FILE *in = argc == 2 || checks ? fopen(path, "r") : NULL;
	char *before = NULL, *after = NULL;
	size_t before_size, after_size;

	if (!in) {
		fprintf(stderr, "usage: make_schema [--check] FILE, which can be read\n");
		return 2;
	}
	FILE *old = open_memstream(&before, &before_size), *new = open_memstream(&after, &after_size);
	size_t found = old && new ? copy(in, old, new) : 0;
	fclose(in);
	if (found != sizeof(regions) / sizeof(regions[0]) || fclose(old) || fclose(new)) {
		fprintf(stderr, "%s: not one region for each list of store/file/columns.h\n", path);
		return 1;
	}
	bool same = before_size == after_size && memcmp(before, after, after_size) == 0;
	bool fine = same || (!checks && write_file(path, after, after_size));
	if (!fine)
		fprintf(stderr,
		        checks ? "%s: differs from store/file/columns.h: build the target store_schema\n"
		               : "%s: cannot be written\n",
		        path);
	free(before);
	free(after);
	return fine ? 0 : 1;
}
