/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/shown_type.h"
#include "cmd/line/command.h"
#include "cmd/read/finding_list.h"
#include "cmd/read/page_times.h"
#include "cmd/read/page_walk.h"
#include "queryprof.h"
#include "sql_causes.h"
#include "sql_lock_chains.h"
#include "sql_page_callers.h"
#include "sql_page_chains.h"
#include "sql_page_file.h"
#include "sql_page_findings.h"
#include "sql_page_functions.h"
#include "sql_page_history.h"
#include "sql_page_lanes.h"
#include "sql_page_locks.h"
#include "sql_page_losses.h"
#include "sql_page_origins.h"
#include "sql_page_pages.h"
#include "sql_page_plans.h"
#include "sql_page_runs.h"
#include "sql_page_sampling.h"
#include "sql_page_stacks.h"
#include "sql_page_statements.h"
#include "sql_page_sums.h"
#include "sql_page_unplanned.h"
#include "sql_page_wal_points.h"
#include "sql_page_wals.h"
#include "sql_pages.h"
#include "sql_plan_nodes.h"
#include "sql_statement_lines.h"

#define STATEMENTS_MAX "200"
#define PLANS_MAX "400"
#define FINDINGS_MAX "100"

/* --- the data ----------------------------------------------------------------------------------- */

/* The parts of the data, in this order, because later ones read tables of earlier ones. */
static const struct part {
	const char *name; /* NULL: its rows are only for later parts */
	const char *sql;  /* NULL: page_times_print() */
} parts[] = {
	{ NULL, "DROP TABLE IF EXISTS temp.page_findings; CREATE TEMP TABLE page_findings AS " FINDING_LIST
	        " LIMIT " FINDINGS_MAX },
	{ NULL, sql_statement_lines },
	{ NULL, sql_causes },
	{ NULL, sql_page_stacks },
	{ "file", sql_page_file },
	{ "statements", sql_page_statements },
	{ "plans", sql_page_plans },
	{ "history", sql_page_history },
	{ "callers", sql_page_callers },
	{ "runs", sql_page_runs },
	{ "functions", sql_page_functions },
	{ "stacks", sql_page_sums },
	{ "times", NULL },
	{ "origins", sql_page_origins },
	{ "lanes", sql_page_lanes },
	{ "locks", sql_page_locks },
	{ "chains", sql_page_chains },
	{ "wals", sql_page_wals },
	{ "wal_points", sql_page_wal_points },
	{ NULL, sql_pages },
	{ "pages", sql_page_pages },
	{ "findings", sql_page_findings },
	{ "losses", sql_page_losses },
	{ "sampling", sql_page_sampling },
	{ "unplanned", sql_page_unplanned },
};

static int run_rows(sqlite3 *db, const char *sql, const struct page_options *options)
{
	const struct sql_parameter parameters[] = { { ":no_text", options->no_text ? "1" : NULL },
		                                    { ":no_paths", options->no_paths ? "1" : NULL },
		                                    { ":limit", STATEMENTS_MAX },
		                                    { NULL, NULL } };

	return run_sql(db, sql, parameters, &(struct output){ .format = OUTPUT_JSON });
}

int page_print_rows(sqlite3 *db, const char *name, const char *sql, const struct page_options *options)
{
	printf(",\"%s\":", name);
	return run_rows(db, sql, options);
}

/* A temporary table with the rows of another command. */
static int make_table(sqlite3 *db, const char *name, const char *rows, const struct sql_parameter *parameters)
{
	char *sql = sqlite3_mprintf("DROP TABLE IF EXISTS temp.%s; CREATE TEMP TABLE %s AS\n%s", name, name,
	                            rows);
	const int result = sql ? run_sql(db, sql, parameters, &(struct output){ .table.is_bare = true })
	                       : complain("out of memory");

	sqlite3_free(sql);
	return result;
}

/* Of all statements, by wall time. */
static int make_plans(sqlite3 *db)
{
	struct shown_type type = shown_type_of(SHOWN_TYPE_WALL);

	shown_type_read(&type, db);
	const struct sql_parameter parameters[] = { { ":trace_type", type.name },
		                                    { ":limit", PLANS_MAX },
		                                    { NULL, NULL } };
	return make_table(db, "page_plans", sql_plan_nodes, parameters);
}

static int print_parts(sqlite3 *db, const struct page_options *options)
{
	/* One pass sums up all that these need of the samples. */
	int result = finding_list_begin(db);

	run_sql_prepare(db, sql_causes);
	run_sql_prepare(db, sql_plan_nodes);
	run_sql_prepare(db, sql_page_stacks);
	if (!result)
		result = finding_list_make(db);
	if (!result)
		result = make_plans(db);
	if (!result)
		result = page_walk(db, NULL);
	if (!result)
		result = make_table(db, "page_chains", sql_lock_chains,
		                    (struct sql_parameter[]){ { NULL, NULL } });
	for (size_t i = 0; !result && i < sizeof(parts) / sizeof(*parts); i++)
		result = !parts[i].sql   ? page_times_print(db)
		         : parts[i].name ? page_print_rows(db, parts[i].name, parts[i].sql, options)
		                         : run_rows(db, parts[i].sql, options);
	return result;
}

char *page_data(sqlite3 *db, const char *path, const struct page_options *options)
{
	const char *slash = strrchr(path, '/');
	FILE *was = stdout;
	char *data = NULL;
	size_t size;
	int result;

	/* The parts print to stdout. */
	stdout = open_memstream(&data, &size);
	if (!stdout) {
		stdout = was;
		complain("out of memory");
		return NULL;
	}
	printf("{\"version\":\"" QUERYPROF_VERSION "\",\"made_ms\":%" PRIu64
	       ",\"no_text\":%s,\"is_plan\":%s,\"name\":",
	       clock_ns(CLOCK_REALTIME) / 1000000, options->no_text ? "true" : "false",
	       options->is_plan ? "true" : "false");
	json_write_text(stdout, slash ? slash + 1 : path, "");
	result = print_parts(db, options);
	printf("}\n");
	if (fclose(stdout) != 0 && !result)
		result = complain("out of memory");
	stdout = was;
	if (result) {
		free(data);
		data = NULL;
	}
	return data;
}

/* --- the page ------------------------------------------------------------------------------------ */

#ifdef QUERYPROF_PAGE
/* See page_bytes.S. */
extern const char page_bytes[], page_bytes_end[];

static const char data_marker[] = "@DATA@", policy_marker[] = "Content-Security-Policy\" content=\"";

bool page_is_there(const char *command)
{
	(void)command;
	return true;
}

/* "<" could end the element that contains the data; in JSON, it occurs only in strings. */
static void write_data(FILE *to, const char *data)
{
	for (size_t size; *data; data += size) {
		size = strcspn(data, "<");
		fwrite(data, 1, size, to);
		if (data[size]) {
			fputs("\\u003c", to);
			size++;
		}
	}
}

void page_write(FILE *to, const char *data)
{
	const size_t size = (size_t)(page_bytes_end - page_bytes);
	const char *marker = memmem(page_bytes, size, data_marker, sizeof(data_marker) - 1);
	const char *rest = marker + sizeof(data_marker) - 1; /* build.mjs has checked that it exists */

	fwrite(page_bytes, 1, (size_t)(marker - page_bytes), to);
	write_data(to, data ? data : "null");
	fwrite(rest, 1, (size_t)(page_bytes_end - rest), to);
}

char *page_policy(void)
{
	const size_t size = (size_t)(page_bytes_end - page_bytes);
	const char *policy = memmem(page_bytes, size, policy_marker, sizeof(policy_marker) - 1);

	policy += sizeof(policy_marker) - 1;
	return strndup(policy, strcspn(policy, "\""));
}
#else
bool page_is_there(const char *command)
{
	complain("%s: built without node and npm, so there is no page", command);
	return false;
}

void page_write(FILE *to, const char *data)
{
	(void)to;
	(void)data;
}

char *page_policy(void)
{
	return NULL;
}
#endif
