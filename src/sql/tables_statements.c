/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.statement_stats: what all runs of each statement came to in this process, until now.
 *
 * The counters know statements, not connections: a connection that may not see the others'
 * queries sees none of them.
 */
#include <stdio.h>
#include <unistd.h>

#include "query/statement_stats.h"
#include "sql/tables_rows.h"
#include "store/write/columns.h"

#define NO_COLUMN(...)
#define COLUMN(name, type, value) { #name, #type, 0 },
static const struct column statement_stats_columns[] = { STATEMENT_COLUMNS(COLUMN, COLUMN, NO_COLUMN, COLUMN,
	                                                                   COLUMN, COLUMN) };

struct filling {
	struct table_rows *rows;
	const char *program;
};

static void write_histogram(const struct statement_counts *counts, char *text, size_t size)
{
	for (int i = 0, used = 0; i < STATEMENT_BUCKETS; i++)
		used += snprintf(text + used, size - (size_t)used, "%s%llu%s", i ? "," : "[",
		                 (unsigned long long)counts->runs[i], i < STATEMENT_BUCKETS - 1 ? "" : "]");
}

#define ADD_INTEGER(value) table_add_integer(filling->rows, value)
#define ADD_REAL(value) table_add_real(filling->rows, value)
#define ADD_TEXT(value) table_add_text(filling->rows, value)
#define ADD(name, type, value) ADD_##type(value);
#define ADD_LEAST(name, type, value)                                                                         \
	if (value)                                                                                           \
		ADD_##type(value);                                                                           \
	else                                                                                                 \
		table_add_text(filling->rows, NULL);

static void add_statement(void *context, const struct statement_stats *stats)
{
	const struct filling *filling = context;
	const char *program = filling->program;
	char histogram[STATEMENT_BUCKETS * 21 + 2];

	write_histogram(stats->counts, histogram, sizeof(histogram));
	/* clang-format off */
	STATEMENT_COLUMNS(ADD, ADD, NO_COLUMN, ADD_LEAST, ADD, ADD)
	/* clang-format on */
}

static void fill_statement_stats(struct table_rows *rows, struct session *session)
{
	char program[4096];
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct filling filling = { rows, program };

	program[size > 0 ? size : 0] = '\0';
	if (session->settings.show_queries_of_other_sessions)
		statement_stats_each(add_statement, &filling);
}

const struct table table_statement_stats = { .name = "statement_stats",
	                                     TABLE_COLUMNS(statement_stats_columns),
	                                     .fill = fill_statement_stats };
