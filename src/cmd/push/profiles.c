/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/profiles.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/vector.h"
#include "cmd/export/reader.h"
#include "cmd/export/spans.h"
#include "cmd/file/run_sql.h"
#include "cmd/http/http.h"
#include "cmd/line/command.h"
#include "cmd/ui/progress.h"
#include "export/formats.h"
#include "export/resource.h"
#include "export/text.h"
#include "sql_push_samples.h"
#include "sql_push_spans.h"

/* Pyroscope shows a profile at one time, and its agents send one so often. */
#define SLICE_NS INT64_C(10000000000)

#define SHOWN_MAX 200

/* A body ends with the sample or span that makes it this long, and before a profile that would. Servers
 * and proxies refuse longer ones, often from 4 MiB on. */
#define BODY_BYTES (3 << 20)

struct request {
	const char *path, *type;
	char *body;
	size_t size;
};

static struct {
	bool is_pyroscope;
	const char *url;
	VECTOR(struct request) requests;
} target;

/* The samples that become one profile, and the samples that are written as one. */
struct stream {
	bool is_open;
	char *type, *unit; /* as the file has them */
	int64_t process, slice;
	struct export_info info;
	struct resource series;
	FILE *out;
	void *writer;
};

struct reading {
	struct export_reader reader;
	const struct push_position *since, *until;
	const char *service;
	struct stream stream;
	/* Pyroscope's request that is being written. */
	FILE *all; /* NULL: there is none */
	char *all_text;
	size_t all_size;
};

static int begin(const char *url, bool is_zstd, bool is_pyroscope)
{
	const char *wrong = resource_complaint();

	if (is_zstd) {
		complain("push: --zstd applies only to --format clickhouse");
		return COMMAND_MISUSED;
	}
	if (wrong) {
		complain("OTEL_RESOURCE_ATTRIBUTES is %s: %s", getenv("OTEL_RESOURCE_ATTRIBUTES"), wrong);
		return COMMAND_MISUSED;
	}
	target.url = url;
	target.is_pyroscope = is_pyroscope;
	return COMMAND_FINE;
}

int push_otlp_begin(const char *url, bool is_zstd)
{
	return begin(url, is_zstd, false);
}

int push_pyroscope_begin(const char *url, bool is_zstd)
{
	return begin(url, is_zstd, true);
}

static void drop_requests(void)
{
	for (size_t i = 0; i < target.requests.count; i++)
		free(target.requests.items[i].body);
	target.requests.count = 0;
}

void push_profiles_end(void)
{
	drop_requests();
	vector_free(&target.requests);
}

const char *push_profiles_name(enum push_table table)
{
	return table == PUSH_TRACE_LOG ? "samples" : "spans";
}

/* Takes ownership of the body. A command_result. */
static int add_request(const char *path, const char *type, char *body, size_t size)
{
	if (body && vector_push(&target.requests, (struct request){ path, type, body, size }))
		return COMMAND_FINE;
	free(body);
	return complain("out of memory");
}

/* --- Pyroscope's request ---------------------------------------------------------- */

static void write_base64(FILE *out, const unsigned char *data, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t at = 0; at < size; at += 3) {
		size_t left = size - at;
		uint32_t three = (uint32_t)data[at] << 16 | (uint32_t)(left > 1 ? data[at + 1] : 0) << 8 |
		                 (left > 2 ? data[at + 2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[three & 63] : '=', out);
	}
}

static void write_label(FILE *out, const char *name, const char *value, const char *before)
{
	fprintf(out, "%s{\"name\":", before);
	export_write_text(out, name);
	fputs(",\"value\":", out);
	export_write_text(out, value);
	fputc('}', out);
}

/* Grafana uses this name for the CPU time of programs. */
static void name_profile(const char *trace_type, char name[64])
{
	snprintf(name, 64, "%s", strcmp(trace_type, "CPU") == 0 ? "process_cpu" : trace_type);
	for (char *at = name; *at; at++)
		*at = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at) : '_';
}

/* The same id for the same samples: version 8 of UUIDs. */
static void write_id(FILE *out, const struct reading *reading)
{
	const struct stream *stream = &reading->stream;
	struct hash type = hash_bytes(stream->type, strlen(stream->type));
	const uint64_t words[] = { (uint64_t)reading->until->at[PUSH_FILE],
		                   (uint64_t)reading->since->at[PUSH_BATCH],
		                   (uint64_t)reading->until->at[PUSH_BATCH],
		                   (uint64_t)stream->process,
		                   (uint64_t)stream->slice,
		                   type.first };
	struct hash id = hash_words(words, 6);

	fprintf(out, "%08x-%04x-8%03x-%04x-%012" PRIx64, (unsigned)(id.first >> 32),
	        (unsigned)(id.first >> 16 & 0xffff), (unsigned)(id.first & 0xfff),
	        (unsigned)(id.second >> 48 & 0x3fff) | 0x8000, id.second & 0xffffffffffff);
}

/* False: no memory. */
static bool write_series(struct reading *reading, const unsigned char *profile, size_t size)
{
	const struct stream *stream = &reading->stream;
	bool is_first = !reading->all;
	char name[64], *label;
	bool fine = true;

	if (is_first && !(reading->all = open_memstream(&reading->all_text, &reading->all_size)))
		return false;
	FILE *out = reading->all;
	name_profile(stream->type, name);
	fputs(is_first ? "{\"series\":[\n{\"labels\":[" : ",\n{\"labels\":[", out);
	write_label(out, "__name__", name, "");
	for (size_t i = 0; fine && i < stream->series.items.count; i++) {
		const struct resource_item *item = &stream->series.items.items[i];

		fine = (label = resource_label_name(item->key)) != NULL;
		/* Two keys may become one name. */
		if (fine && item->text && !resource_has_label(&stream->series, i, label))
			write_label(out, label, item->text, ",");
		free(label);
	}
	fputs("],\"samples\":[{\"ID\":\"", out);
	write_id(out, reading);
	fputs("\",\"rawProfile\":\"", out);
	write_base64(out, profile, size);
	fputs("\"}]}", out);
	return fine;
}

/* `is_whole`: else nothing comes of it. A command_result. */
static int end_all(struct reading *reading, bool is_whole)
{
	FILE *out = reading->all;
	bool fine;

	if (!out)
		return COMMAND_FINE;
	reading->all = NULL;
	fputs("\n]}\n", out);
	fine = fclose(out) == 0;
	if (is_whole && fine)
		return add_request("/push.v1.PusherService/Push", "Content-Type: application/json",
		                   reading->all_text, reading->all_size);
	free(reading->all_text);
	return fine ? COMMAND_FINE : complain("out of memory");
}

/* Of push/samples.sql: the columns that identify a profile. */
enum { TYPE = 12, UNIT, PROCESS };

/* --- profiles --------------------------------------------------------------------- */

static const struct export_format *format(void)
{
	return target.is_pyroscope ? &export_pprof : &export_otlp;
}

/* Reads the writer's output from a file in memory: a compressing writer needs a descriptor. NULL: no memory.
 */
static char *read_out(FILE *out, size_t *size)
{
	long end = fseek(out, 0, SEEK_END) == 0 ? ftell(out) : -1;
	char *data = end >= 0 ? malloc((size_t)end + 1) : NULL;

	*size = data ? (size_t)end : 0;
	if (data && pread(fileno(out), data, *size, 0) == (ssize_t)*size)
		return data;
	free(data);
	return NULL;
}

/* A command_result. */
static int finish_profile(struct reading *reading)
{
	size_t size;
	char *data = fflush(reading->stream.out) == 0 ? read_out(reading->stream.out, &size) : NULL;
	int result = COMMAND_FINE;

	if (!data)
		return complain("out of memory");
	if (!target.is_pyroscope)
		return add_request("/v1development/profiles", "Content-Type: application/x-protobuf", data,
		                   size);
	if (reading->all && ftell(reading->all) + (long)(size / 3 * 4) >= BODY_BYTES)
		result = end_all(reading, true);
	if (result == COMMAND_FINE && !write_series(reading, (unsigned char *)data, size))
		result = complain("out of memory");
	free(data);
	return result;
}

/* `is_whole`: else nothing comes of it. A command_result. */
static int end_stream(struct reading *reading, bool is_whole)
{
	struct stream *stream = &reading->stream;
	int result = COMMAND_FINE;

	if (!stream->is_open)
		return COMMAND_FINE;
	if (stream->writer && !export_end(format(), stream->writer, is_whole))
		result = complain("out of memory");
	if (stream->out && is_whole && result == COMMAND_FINE)
		result = finish_profile(reading);
	if (stream->out)
		fclose(stream->out);
	resource_free(&stream->series);
	free(stream->type);
	free(stream->unit);
	*stream = (struct stream){ .is_open = false };
	return result;
}

static int64_t slice_of(int64_t time_ns)
{
	return target.is_pyroscope ? time_ns / SLICE_NS : 0;
}

static int begin_stream(struct reading *reading, sqlite3_stmt *row, const struct export_sample *sample)
{
	struct stream *stream = &reading->stream;
	const struct export_labels *labels = sample->labels;
	const char *type = names_keep(reading->reader.names, run_sql_text(row, TYPE)),
		   *unit = names_keep(reading->reader.names, run_sql_text(row, UNIT));
	int fd = memfd_create("queryprof", MFD_CLOEXEC);

	*stream = (struct stream){
		.is_open = true,
		.type = strdup(run_sql_text(row, TYPE)),
		.unit = strdup(run_sql_text(row, UNIT)),
		.process = sqlite3_column_int64(row, PROCESS),
		.slice = slice_of(sample->time_ns),
		.out = fd >= 0 ? fdopen(fd, "w+b") : NULL,
	};
	if (fd >= 0 && !stream->out)
		close(fd);
	stream->info = (struct export_info){
		.trace_type = type,
		.unit = unit,
		.is_timed = true,
		.title = "",
		.executable = labels->program,
		.inlines = true,
		.service = reading->service,
		.series = target.is_pyroscope ? &stream->series : NULL,
	};
	if (stream->out && stream->type && stream->unit && type && unit &&
	    (!target.is_pyroscope ||
	     resource_fill(&stream->series, reading->service, labels->program, labels->host, 0)))
		stream->writer = export_begin(format(), stream->out, &stream->info);
	return stream->writer ? COMMAND_FINE : complain("out of memory");
}

static bool is_of_stream(const struct stream *stream, sqlite3_stmt *row, const struct export_sample *sample)
{
	return stream->is_open && strcmp(stream->type, run_sql_text(row, TYPE)) == 0 &&
	       strcmp(stream->unit, run_sql_text(row, UNIT)) == 0 &&
	       stream->process == sqlite3_column_int64(row, PROCESS) &&
	       stream->slice == slice_of(sample->time_ns) &&
	       (!format()->size || format()->size(stream->writer) < BODY_BYTES);
}

/* A command_result. */
static int add_row(struct reading *reading, sqlite3_stmt *row)
{
	const struct reader_sample read = {
		.time_ns = sqlite3_column_int64(row, 0),
		.weight = sqlite3_column_int64(row, 1),
		.period_ns = sqlite3_column_int64(row, 2),
		.size = sqlite3_column_int64(row, 3),
		.stack = sqlite3_column_int64(row, 4),
		.is_truncated = sqlite3_column_int(row, 5),
		.run = sqlite3_column_int64(row, 6),
		.thread = sqlite3_column_int64(row, 7),
		.labels = sqlite3_column_int64(row, 8),
		.wait = sqlite3_column_int64(row, 9),
		.context = sqlite3_column_int64(row, 10),
		.span = sqlite3_column_int64(row, 11),
	};
	struct export_sample sample;
	int result = COMMAND_FINE;

	if (!export_reader_sample(&reading->reader, &read, run_sql_text(row, UNIT), &sample))
		return COMMAND_FAILED;
	if (!is_of_stream(&reading->stream, row, &sample)) {
		result = end_stream(reading, true);
		if (result == COMMAND_FINE)
			result = begin_stream(reading, row, &sample);
	}
	if (result == COMMAND_FINE && !format()->add(reading->stream.writer, &sample))
		result = complain("out of memory");
	return result;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, int64_t since, int64_t until)
{
	sqlite3_stmt *rows = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_bind_int64(rows, sqlite3_bind_parameter_index(rows, ":since"), since);
	sqlite3_bind_int64(rows, sqlite3_bind_parameter_index(rows, ":until"), until);
	sqlite3_bind_int64(rows, sqlite3_bind_parameter_index(rows, ":by_process"), target.is_pyroscope);
	return rows;
}

/* A command_result. */
static int add_rows(struct reading *reading, int64_t *count)
{
	sqlite3 *db = reading->reader.db;
	sqlite3_stmt *rows =
		prepare(db, sql_push_samples, reading->since->at[PUSH_BATCH], reading->until->at[PUSH_BATCH]);
	int result = COMMAND_FINE, code = SQLITE_ERROR, ended;

	while (rows && result == COMMAND_FINE && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		result = add_row(reading, rows);
		++*count;
	}
	if (result == COMMAND_FINE && code != SQLITE_DONE)
		result = complain("%s: %s", reading->reader.path, sqlite3_errmsg(db));
	ended = end_stream(reading, result == COMMAND_FINE);
	sqlite3_finalize(rows);
	return result == COMMAND_FINE ? ended : result;
}

/* Pyroscope's profiles are sent together, as many as a body holds. */
static int add_samples(struct reading *reading, int64_t *count)
{
	int result = add_rows(reading, count), ended = end_all(reading, result == COMMAND_FINE);

	return result == COMMAND_FINE ? ended : result;
}

/* The exports' labels need it. It is empty: how often a statement ran is in no profile. */
#define PREPARE_LABELS                                                                                       \
	"CREATE TEMP TABLE IF NOT EXISTS selected_statements (hash INTEGER PRIMARY KEY, runs INTEGER)"

static int read_samples(struct reading *reading, sqlite3 *db, const char *path, int64_t *count)
{
	int result = export_reader_begin(&reading->reader, true);

	if (result == COMMAND_FINE && sqlite3_exec(db, PREPARE_LABELS, NULL, NULL, NULL) != SQLITE_OK)
		result = complain("%s: %s", path, sqlite3_errmsg(db));
	if (result == COMMAND_FINE)
		result = export_reader_enter(&reading->reader, db, path, 0);
	if (result == COMMAND_FINE)
		result = add_samples(reading, count);
	export_reader_detach(&reading->reader);
	export_reader_free(&reading->reader);
	return result;
}

/* --- spans ------------------------------------------------------------------------ */

/* A request that is being written. */
struct span_body {
	FILE *out; /* NULL: there is none */
	void *writer;
	char *text;
	size_t size;
};

static bool begin_body(struct span_body *body, const struct export_info *info)
{
	*body = (struct span_body){ .out = open_memstream(&body->text, &body->size) };
	if (body->out)
		body->writer = export_begin(&export_otlp_traces, body->out, info);
	return body->writer != NULL;
}

/* `is_whole`: else nothing comes of it. A command_result. */
static int end_body(struct span_body *body, bool is_whole)
{
	bool fine = true;

	if (!body->out)
		return COMMAND_FINE;
	if (body->writer)
		fine = export_end(&export_otlp_traces, body->writer, is_whole);
	fine = fclose(body->out) == 0 && fine;
	body->out = NULL;
	if (is_whole && fine)
		return add_request("/v1/traces", "Content-Type: application/json", body->text, body->size);
	free(body->text);
	return fine ? COMMAND_FINE : complain("out of memory");
}

/* As many bodies as they need. A command_result. */
static int write_spans(sqlite3_stmt *rows, const char *path, const char *service, int64_t *count)
{
	const struct export_info info = {
		.trace_type = "", .unit = "", .title = "", .executable = "", .service = service
	};
	struct span_body body = { .out = NULL };
	int result = COMMAND_FINE, code = SQLITE_DONE, ended;

	while (result == COMMAND_FINE && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const struct export_span span = export_spans_read(rows);

		if ((!body.out && !begin_body(&body, &info)) ||
		    !export_otlp_traces.add_span(body.writer, &span))
			result = complain("out of memory");
		else if (ftell(body.out) >= BODY_BYTES)
			result = end_body(&body, true);
		progress_count(++*count, "spans");
	}
	if (result == COMMAND_FINE && code != SQLITE_DONE)
		result = complain("%s: %s", path, sqlite3_errmsg(sqlite3_db_handle(rows)));
	ended = end_body(&body, result == COMMAND_FINE);
	return result == COMMAND_FINE ? ended : result;
}

static int read_spans(const struct reading *reading, sqlite3 *db, const char *path, int64_t *count)
{
	sqlite3_stmt *rows =
		prepare(db, sql_push_spans, reading->since->at[PUSH_SPANS], reading->until->at[PUSH_SPANS]);
	int result = rows ? write_spans(rows, path, reading->service, count)
	                  : complain("%s: %s", path, sqlite3_errmsg(db));

	sqlite3_finalize(rows);
	return result;
}

int push_profiles_read(sqlite3 *db, const char *path, const struct push_position *since,
                       const struct push_position *until, const char *service, bool is_counted,
                       struct push_stacks *stacks, struct push_batch *batch)
{
	struct reading reading = {
		.since = since,
		.until = until,
		.service = service,
		.reader = { .labels = { .has_links = format()->has_links } },
	};
	int result = COMMAND_FINE;

	(void)stacks; /* names are resolved as those of exports are */
	drop_requests();
	*batch = (struct push_batch){ .missed = 0 };
	if (since->at[PUSH_BATCH] != until->at[PUSH_BATCH])
		result = read_samples(&reading, db, path, &batch->rows[PUSH_TRACE_LOG]);
	if (result == COMMAND_FINE && is_counted)
		batch->missed =
			until->at[PUSH_SAMPLES] - since->at[PUSH_SAMPLES] - batch->rows[PUSH_TRACE_LOG];
	if (result == COMMAND_FINE && !target.is_pyroscope && since->at[PUSH_SPANS] != until->at[PUSH_SPANS])
		result = read_spans(&reading, db, path, &batch->rows[PUSH_SPAN_LOG]);
	return result;
}

/* --- sending ---------------------------------------------------------------------- */

/* If the server refuses a piece, it will refuse it later, too, unless it is overloaded now. */
static bool is_final(const struct http_response *response)
{
	return response->status / 100 == 4 && response->status != 408 && response->status != 429;
}

/* A collector may accept only a part, and reports that in a text. */
static void report_rejected(const struct request *request, const struct http_response *response)
{
	char text[SHOWN_MAX];
	size_t size = 0;
	bool is_json = response->size && response->text[0] == '{';

	if (target.is_pyroscope ||
	    (is_json ? !strstr(response->text, "ejected") && !strstr(response->text, "rrorMessage")
	             : response->size <= 2))
		return;
	for (size_t i = 0; i < response->size && size < sizeof(text) - 1; i++)
		if (isprint((unsigned char)response->text[i]))
			text[size++] = response->text[i];
	text[size] = 0;
	complain("%.*s%s: the server reports about the data: %s", (int)strcspn(target.url, "?"), target.url,
	         request->path, text);
}

static int send_request(const struct request *request)
{
	const char *const headers[] = { request->type, NULL };
	size_t base = strcspn(target.url, "?"), size = base;
	struct http_response response;

	while (size && target.url[size - 1] == '/')
		size--;
	char *url = text_format("%.*s%s%s", (int)size, target.url, request->path, target.url + base);
	if (!url)
		return complain("out of memory");
	enum http_result result = http_send(url, headers, request->body, request->size, is_final, &response);
	free(url);
	if (result != HTTP_FINE)
		return COMMAND_FAILED;
	report_rejected(request, &response);
	return COMMAND_FINE;
}

int push_profiles_send(void)
{
	for (size_t i = 0; i < target.requests.count; i++)
		if (send_request(&target.requests.items[i]) != COMMAND_FINE)
			return COMMAND_FAILED;
	return COMMAND_FINE;
}
