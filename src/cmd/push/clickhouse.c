/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request has rows of one table. Its token consists of the position in the file, so a server that remembers
 * tokens drops a repetition immediately. On every server a repetition is harmless, because each row has a key
 * of its own (sql/clickhouse/tables.sql).
 */
#include "cmd/push/clickhouse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/file/words.h"
#include "cmd/file/run_sql.h"
#include "cmd/http/http.h"
#include "cmd/line/command.h"
#include "export/clickhouse.h"
#include "label/pairs.h"
#include "sql_push_checkpoints.h"
#include "sql_push_lock_waits.h"
#include "sql_push_losses.h"
#include "sql_push_modules.h"
#include "sql_push_query_log.h"
#include "sql_push_span_log.h"
#include "sql_push_statement_stats.h"
#include "sql_push_trace_log.h"
#include "sql_push_wal_log.h"
#include "sql_span_texts.h"
#include "store/file/database.h"
#include "store/file/schema.h"

static const struct {
	const char *name, *sql;
	enum push_position_part part; /* the meaning of :since and :until */
} tables[PUSH_TABLES] = {
	[PUSH_TRACE_LOG] = { "trace_log_rows", sql_push_trace_log, PUSH_BATCH },
	[PUSH_QUERY_LOG] = { "query_log_rows", sql_push_query_log, PUSH_BATCH },
	[PUSH_STATEMENT_STATS] = { "statement_stats_rows", sql_push_statement_stats, PUSH_STATS },
	[PUSH_SPAN_LOG] = { "span_log_rows", sql_push_span_log, PUSH_SPANS },
	[PUSH_LOCK_WAITS] = { "lock_waits_rows", sql_push_lock_waits, PUSH_WAITS },
	[PUSH_CHECKPOINTS] = { "checkpoints_rows", sql_push_checkpoints, PUSH_WAITS },
	[PUSH_WAL_LOG] = { "wal_log_rows", sql_push_wal_log, PUSH_WAITS },
	[PUSH_MODULE_ROWS] = { "modules_rows", sql_push_modules, PUSH_MODULES },
	[PUSH_LOSSES] = { "losses_rows", sql_push_losses, PUSH_BATCH },
};

struct column {
	char *name, *type_name;
	struct clickhouse_type type;
	bool is_known; /* the type */
};

/* Rows to be sent to one table. */
struct request {
	struct bytes body;
	char *url;
};

static struct {
	char *url; /* ends with ? or & */
	enum clickhouse_method method;
	int version; /* 2208 for 22.8 */
	VECTOR(struct column) columns[PUSH_TABLES];
	struct request requests[PUSH_TABLES];
} target;

const char *push_table_name(enum push_table table)
{
	return tables[table].name;
}

/* --- the server ------------------------------------------------------------------- */

/* Errors of ClickHouse that mean a wrong request. Other errors pass: too many parts, no memory, no disk, a
 * shard that is unavailable. */
static bool is_final(const struct http_response *response)
{
	static const int codes[] = {
		16,  /* NO_SUCH_COLUMN_IN_TABLE */
		33,  /* CANNOT_READ_ALL_DATA */
		47,  /* UNKNOWN_IDENTIFIER */
		53,  /* TYPE_MISMATCH */
		60,  /* UNKNOWN_TABLE */
		62,  /* SYNTAX_ERROR */
		81,  /* UNKNOWN_DATABASE */
		115, /* UNKNOWN_SETTING */
		117, /* INCORRECT_DATA */
		164, /* READONLY */
		171, /* BLOCKS_HAVE_DIFFERENT_STRUCTURE */
		192, /* UNKNOWN_USER */
		193, /* WRONG_PASSWORD */
		194, /* REQUIRED_PASSWORD */
		195, /* IP_ADDRESS_NOT_ALLOWED */
		497, /* ACCESS_DENIED */
		516, /* AUTHENTICATION_FAILED */
	};
	const char *code = strstr(response->text, "Code: ");

	for (size_t i = 0; code && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (atoi(code + strlen("Code: ")) == codes[i])
			return true;
	return !code && response->status / 100 == 4 && response->status != 408 && response->status != 429;
}

static char *url_encode(const char *text)
{
	char *made = NULL;
	size_t size;
	FILE *out = open_memstream(&made, &size);

	for (; out && *text; text++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~", *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	if (!out || fclose(out) != 0)
		return NULL;
	return made;
}

/* A command_result. */
static int send_sql(const char *sql, struct http_response *response)
{
	return http_send(target.url, NULL, sql, strlen(sql), is_final, response) == HTTP_FINE
	               ? COMMAND_FINE
	               : COMMAND_FAILED;
}

static int ask_version(void)
{
	struct http_response response;
	int major = 0, minor = 0;

	if (send_sql("SELECT version()", &response) != COMMAND_FINE)
		return COMMAND_FAILED;
	if (sscanf(response.text, "%d.%d", &major, &minor) != 2)
		return complain("%.*s: not a ClickHouse server: its version is %.40s",
		                (int)strcspn(target.url, "?"), target.url, response.text);
	target.version = major * 100 + minor;
	return COMMAND_FINE;
}

/* Undoes TabSeparated's escapes of quotes in a type. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '\\' || !text[1])
			*to++ = *text;
	*to = 0;
}

/* The columns that take values: name, type, and a kind of default other than those that are computed. */
static int ask_columns(enum push_table table)
{
	struct http_response response;
	char sql[100], *save = NULL, *copy;

	snprintf(sql, sizeof(sql), "DESCRIBE TABLE %s FORMAT TabSeparated", tables[table].name);
	if (send_sql(sql, &response) != COMMAND_FINE)
		return complain("sql/clickhouse/tables.sql creates the tables");
	copy = strdup(response.text);
	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *type = strchr(line, '\t'), *end = type ? strchr(type + 1, '\t') : NULL;

		if (!end)
			continue;
		*type++ = *end++ = 0;
		if (!strncmp(end, "ALIAS", 5) || !strncmp(end, "MATERIALIZED", 12))
			continue;
		unescape(type);
		struct column column = { .name = strdup(line), .type_name = strdup(type) };
		column.is_known = clickhouse_type_read(&column.type, type);
		if (!vector_push(&target.columns[table], column))
			break;
	}
	free(copy);
	return COMMAND_FINE;
}

static int check_columns(void);

int push_clickhouse_begin(const char *url, bool is_zstd)
{
	/* An insert through a Distributed table responds after the shard has stored it. */
	target.url = http_url_with(url, "wait_end_of_query=1&insert_distributed_sync=1");
	target.method = is_zstd ? CLICKHOUSE_ZSTD : CLICKHOUSE_LZ4;
	if (!target.url)
		return complain("out of memory");
	if (ask_version() != COMMAND_FINE)
		return COMMAND_FAILED;
	for (enum push_table i = 0; i < PUSH_TABLES; i++)
		if (ask_columns(i) != COMMAND_FINE)
			return COMMAND_FAILED;
	return check_columns();
}

static void clear_request(struct request *request)
{
	free(request->url);
	vector_free(&request->body.data);
	*request = (struct request){ .url = NULL };
}

void push_clickhouse_end(void)
{
	for (int i = 0; i < PUSH_TABLES; i++) {
		for (size_t k = 0; k < target.columns[i].count; k++) {
			free(target.columns[i].items[k].name);
			free(target.columns[i].items[k].type_name);
		}
		vector_free(&target.columns[i]);
		clear_request(&target.requests[i]);
	}
	free(target.url);
	target.url = NULL;
}

/* --- rows ------------------------------------------------------------------------- */

/* The column of the table for a column of the selection. */
enum source {
	SOURCE_VALUE,
	SOURCE_STACK,            /* to three columns */
	SOURCE_STATEMENT_LABELS, /* to be joined with the next */
	SOURCE_LABELS,
	SOURCE_NUMBERS, /* a JSON array of them */
};

struct table_rows {
	enum push_table table;
	sqlite3_stmt *rows;
	struct push_stacks *stacks;
	struct bytes values; /* rows that are not in the request yet */
	struct {
		enum source source;
		const struct column *column; /* SOURCE_STACK, SOURCE_STATEMENT_LABELS: NULL */
	} to[];                              /* by column of the selection */
};

static void complain_of_type(enum push_table table, const struct column *column)
{
	complain("the target's table %s: column %s has the type %s, which push cannot fill",
	         tables[table].name, column->name, column->type_name);
}

/* NULL after a complaint. */
static const struct column *find_column(enum push_table table, const char *name)
{
	for (size_t i = 0; i < target.columns[table].count; i++) {
		const struct column *column = &target.columns[table].items[i];

		if (strcmp(column->name, name) != 0)
			continue;
		if (column->is_known)
			return column;
		complain_of_type(table, column);
		return NULL;
	}
	complain("the target's table %s has no column %s: add it as in sql/clickhouse/tables.sql",
	         tables[table].name, name);
	return NULL;
}

/* The bytes of a stack are made once, for these columns. */
static const struct {
	const char *name, *items;
} stack_columns[] = { { "trace", "UInt64" }, { "symbols", "String" }, { "lines", "String" } };

static bool find_stack_columns(enum push_table table)
{
	for (size_t i = 0; i < sizeof(stack_columns) / sizeof(stack_columns[0]); i++) {
		const struct column *column = find_column(table, stack_columns[i].name);

		if (!column)
			return false;
		if (!column->type.is_array || !strstr(column->type_name, stack_columns[i].items)) {
			complain_of_type(table, column);
			return false;
		}
	}
	return true;
}

static bool set_columns(struct table_rows *rows)
{
	for (int i = 0; i < sqlite3_column_count(rows->rows); i++) {
		const char *name = sqlite3_column_name(rows->rows, i);

		if (!strcmp(name, "stack")) {
			rows->to[i].source = SOURCE_STACK;
			if (!find_stack_columns(rows->table))
				return false;
			continue;
		}
		if (!strcmp(name, "statement_labels")) {
			rows->to[i].source = SOURCE_STATEMENT_LABELS;
			continue;
		}
		if (!(rows->to[i].column = find_column(rows->table, name)))
			return false;
		rows->to[i].source = !strcmp(name, "labels") || !strcmp(name, "attribute") ? SOURCE_LABELS
		                     : rows->to[i].column->type.is_array                   ? SOURCE_NUMBERS
		                                                                           : SOURCE_VALUE;
	}
	return true;
}

/* NULL: SQLite's error. */
static struct table_rows *begin_rows(sqlite3 *db, enum push_table table)
{
	sqlite3_stmt *selected;
	struct table_rows *rows;

	if (sqlite3_prepare_v2(db, tables[table].sql, -1, &selected, NULL) != SQLITE_OK)
		return NULL;
	rows = calloc(1, sizeof(*rows) + (size_t)sqlite3_column_count(selected) * sizeof(rows->to[0]));
	if (!rows) {
		sqlite3_finalize(selected);
		return NULL;
	}
	rows->table = table;
	rows->rows = selected;
	return rows;
}

static void end_rows(struct table_rows *rows)
{
	vector_free(&rows->values.data);
	sqlite3_finalize(rows->rows);
	free(rows);
}

/* On an empty file, because an error of the target concerns all files. A command_result. */
static int check_columns(void)
{
	sqlite3 *db = NULL;
	bool fine = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, "unix") == SQLITE_OK &&
	            schema_make_tables(db) == SQLITE_OK && words_add(db) == SQLITE_OK &&
	            sqlite3_exec(db, sql_span_texts, NULL, NULL, NULL) == SQLITE_OK;
	int result = fine ? COMMAND_FINE : complain("a database of no rows: %s", sqlite3_errmsg(db));

	for (enum push_table i = 0; result == COMMAND_FINE && i < PUSH_TABLES; i++) {
		struct table_rows *rows = begin_rows(db, i);

		if (!rows)
			result = complain("a database of no rows: %s", sqlite3_errmsg(db));
		else if (!set_columns(rows))
			result = COMMAND_FAILED;
		if (rows)
			end_rows(rows);
	}
	sqlite3_close(db);
	return result;
}

static void put_value(struct table_rows *rows, int i)
{
	const struct clickhouse_values *values = &rows->to[i].column->type.values[0];

	switch (sqlite3_column_type(rows->rows, i)) {
	case SQLITE_INTEGER:
		clickhouse_put_number(&rows->values, values, sqlite3_column_int64(rows->rows, i));
		return;
	case SQLITE_FLOAT:
		clickhouse_put_real(&rows->values, values, sqlite3_column_double(rows->rows, i));
		return;
	case SQLITE_NULL: clickhouse_put_text(&rows->values, values, "", 0); return;
	default:
		clickhouse_put_text(&rows->values, values, (const char *)sqlite3_column_text(rows->rows, i),
		                    (size_t)sqlite3_column_bytes(rows->rows, i));
	}
}

/* An SQLite result. */
static int put_stack(struct table_rows *rows, int64_t id)
{
	const struct bytes *stack;
	int code = push_stacks_find(rows->stacks, id, &stack);

	if (code == SQLITE_OK)
		bytes_put(&rows->values, stack->data.items, stack->data.count);
	return code;
}

/* Labels of the statement's comments take precedence over labels of the run. False: no memory. */
static bool put_labels(struct bytes *to, const struct clickhouse_type *type, const char *first,
                       const char *second)
{
	struct label_pairs pairs = { .items = { 0 } };
	bool fine = label_pairs_add_set(&pairs, first) && label_pairs_add_set(&pairs, second);

	if (fine && type->is_map) {
		clickhouse_put_count(to, pairs.items.count);
		for (size_t i = 0; i < pairs.items.count; i++) {
			const struct label_pair *pair = &pairs.items.items[i];

			clickhouse_put_text(to, &type->values[0], pair->key, strlen(pair->key));
			clickhouse_put_text(to, &type->values[1], pair->text, strlen(pair->text));
		}
	} else if (fine) {
		char *text = pairs.items.count ? label_pairs_text(&pairs) : strdup("{}");

		fine = text != NULL;
		if (fine)
			clickhouse_put_text(to, &type->values[0], text, label_set_object(text));
		free(text);
	}
	label_pairs_free(&pairs);
	return fine;
}

static void put_numbers(struct bytes *to, const struct clickhouse_type *type, const char *json)
{
	struct bytes items = { .failed = false };
	size_t count = 0;

	json_read(&json, '[');
	for (uint64_t number; json_read_integer(&json, &number); count++) {
		clickhouse_put_number(&items, &type->values[0], (int64_t)number);
		json_read(&json, ',');
	}
	clickhouse_put_count(to, count);
	bytes_put(to, items.data.items, items.data.count);
	to->failed |= items.failed;
	vector_free(&items.data);
}

/* An SQLite result. */
static int put_row(struct table_rows *rows)
{
	const char *of_statement = "";
	int code = SQLITE_OK;

	for (int i = 0; code == SQLITE_OK && i < sqlite3_column_count(rows->rows); i++) {
		const struct column *column = rows->to[i].column;

		switch (rows->to[i].source) {
		case SOURCE_VALUE: put_value(rows, i); break;
		case SOURCE_STACK: code = put_stack(rows, sqlite3_column_int64(rows->rows, i)); break;
		case SOURCE_STATEMENT_LABELS: of_statement = run_sql_text(rows->rows, i); break;
		case SOURCE_LABELS:
			if (!put_labels(&rows->values, &column->type, of_statement,
			                run_sql_text(rows->rows, i)))
				code = SQLITE_NOMEM;
			break;
		case SOURCE_NUMBERS:
			put_numbers(&rows->values, &column->type, run_sql_text(rows->rows, i));
			break;
		}
	}
	return code;
}

static char *make_url(const struct table_rows *rows, const struct push_position *since,
                      const struct push_position *until)
{
	char *sql = NULL, *url = NULL, token[120] = "";
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	enum push_position_part part = tables[rows->table].part;

	if (!out)
		return NULL;
	fprintf(out, "INSERT INTO %s (", tables[rows->table].name);
	for (int i = 0; i < sqlite3_column_count(rows->rows); i++)
		if (rows->to[i].source != SOURCE_STATEMENT_LABELS)
			fprintf(out, "%s%s", i ? ", " : "",
			        rows->to[i].column ? rows->to[i].column->name : "trace, symbols, lines");
	fputs(") FORMAT RowBinary", out);
	if (fclose(out) != 0)
		return NULL;
	if (target.version >= 2202) /* older servers refuse unknown settings */
		snprintf(token, sizeof(token),
		         "&insert_deduplication_token=%s-%016" PRIx64 "-%" PRId64 "-%" PRId64,
		         tables[rows->table].name, (uint64_t)until->at[PUSH_FILE], since->at[part],
		         until->at[part]);
	char *encoded = url_encode(sql);
	if (encoded)
		url = text_format(
			"%s&decompress=1&http_native_compression_disable_checksumming_on_decompress=1"
			"%s&query=%s",
			target.url, token, encoded);
	free(encoded);
	free(sql);
	return url;
}

static void bind(sqlite3_stmt *row, const char *name, int64_t number)
{
	int index = sqlite3_bind_parameter_index(row, name);

	if (index)
		sqlite3_bind_int64(row, index, number);
}

/* A command_result. */
static int read_table(struct table_rows *rows, sqlite3 *db, const char *path,
                      const struct push_position *since, const struct push_position *until, int64_t *count)
{
	struct request *request = &target.requests[rows->table];
	int code = SQLITE_DONE;

	if (!set_columns(rows))
		return COMMAND_FAILED;
	while ((code = sqlite3_step(rows->rows)) == SQLITE_ROW) {
		if ((code = put_row(rows)) != SQLITE_OK)
			return complain("%s: %s", path, sqlite3_errstr(code));
		++*count;
		if (rows->values.data.count >= CLICKHOUSE_FRAME_BYTES &&
		    !clickhouse_pack(&rows->values, target.method, &request->body))
			return complain("out of memory");
	}
	if (code != SQLITE_DONE)
		return complain("%s: %s", path, sqlite3_errmsg(db));
	if (*count && (!clickhouse_pack(&rows->values, target.method, &request->body) ||
	               !(request->url = make_url(rows, since, until))))
		return complain("out of memory");
	return COMMAND_FINE;
}

int push_clickhouse_read(sqlite3 *db, const char *path, const struct push_position *since,
                         const struct push_position *until, const char *service, bool is_counted,
                         struct push_stacks *stacks, struct push_batch *batch)
{
	int result = COMMAND_FINE;

	*batch = (struct push_batch){ .missed = 0 };
	for (enum push_table i = 0; result == COMMAND_FINE && i < PUSH_TABLES; i++) {
		enum push_position_part part = tables[i].part;
		struct table_rows *rows;

		clear_request(&target.requests[i]);
		if (since->at[part] == until->at[part])
			continue;
		rows = begin_rows(db, i);
		if (!rows)
			return complain("%s: %s", path, sqlite3_errmsg(db));
		rows->stacks = stacks;
		bind(rows->rows, ":since", since->at[part]);
		bind(rows->rows, ":until", until->at[part]);
		bind(rows->rows, ":missed", batch->missed);
		int index = sqlite3_bind_parameter_index(rows->rows, ":service");
		if (index)
			sqlite3_bind_text(rows->rows, index, service, -1, SQLITE_STATIC);
		result = read_table(rows, db, path, since, until, &batch->rows[i]);
		/* Samples are sent first. */
		if (i == PUSH_TRACE_LOG && is_counted)
			batch->missed = until->at[PUSH_SAMPLES] - since->at[PUSH_SAMPLES] -
			                batch->rows[PUSH_TRACE_LOG];
		end_rows(rows);
	}
	return result;
}

int push_clickhouse_send(void)
{
	struct http_response response;

	for (int i = 0; i < PUSH_TABLES; i++) {
		const struct request *request = &target.requests[i];

		if (request->url && http_send(request->url, NULL, request->body.data.items,
		                              request->body.data.count, is_final, &response) != HTTP_FINE)
			return COMMAND_FAILED;
	}
	return COMMAND_FINE;
}
