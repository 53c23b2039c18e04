/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans in JSON for OpenTelemetry's OTLP/HTTP (POST /v1/traces): one resource per process. There, ids are
 * hexadecimal, and 64-bit numbers are texts.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "export/export.h"
#include "export/resource.h"
#include "export/text.h"
#include "queryprof.h"

struct writer {
	EXPORT_WRITER;
	bool has_resource, failed;
	int64_t process; /* of the previous span */
};

enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };

static void write_attribute(FILE *out, const char *key, const char *text, const char *before)
{
	fprintf(out, "%s{\"key\":", before);
	export_write_text(out, key);
	fputs(",\"value\":{\"stringValue\":", out);
	export_write_text(out, text);
	fputs("}}", out);
}

static void write_number(FILE *out, const char *key, int64_t number, const char *before)
{
	fprintf(out, "%s{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRId64 "\"}}", before, key, number);
}

static bool write_resource(struct writer *writer, const struct export_span *span)
{
	struct resource resource = { .items = { 0 } };
	bool fine =
		resource_fill(&resource, writer->info->service, span->program, span->host, span->process_id);

	for (size_t i = 0; i < resource.items.count; i++) {
		const struct resource_item *item = &resource.items.items[i];

		if (item->text)
			write_attribute(writer->out, item->key, item->text, i ? "," : "");
		else
			write_number(writer->out, item->key, item->number, i ? "," : "");
	}
	resource_free(&resource);
	return fine;
}

static bool begin_resource(struct writer *writer, const struct export_span *span)
{
	FILE *out = writer->out;

	if (writer->has_resource && writer->process == span->process)
		return false;
	fputs(writer->has_resource ? "]}]},\n" : "{\"resourceSpans\":[\n", out);
	fputs("{\"resource\":{\"attributes\":[", out);
	writer->failed |= !write_resource(writer, span);
	fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"queryprof\",\"version\":\"" QUERYPROF_VERSION
	      "\"},\"spans\":[\n",
	      out);
	writer->process = span->process;
	writer->has_resource = true;
	return true;
}

/* The span's own attributes, and others that describe it. */
static void write_attributes(FILE *out, const struct export_span *span)
{
	size_t size = strlen(span->otlp_attributes);

	fputs(",\"attributes\":[", out);
	write_number(out, "thread.id", span->thread_id, "");
	if (span->thread_name[0])
		write_attribute(out, "thread.name", span->thread_name, ",");
	if (span->query_id[0])
		write_attribute(out, "queryprof.query_id", span->query_id, ",");
	if (span->file[0]) {
		write_attribute(out, "code.file.path", span->file, ",");
		write_number(out, "code.line.number", span->line, ",");
	}
	if (span->is_unended)
		write_attribute(out, "queryprof.unended", "true", ",");
	/* A JSON array, whose brackets are removed. */
	if (size > 2) {
		fputc(',', out);
		json_write_made(out, span->otlp_attributes + 1, size - 2);
	}
	fputc(']', out);
}

static bool add_span(void *to, const struct export_span *span)
{
	struct writer *writer = to;
	FILE *out = writer->out;

	if (!begin_resource(writer, span))
		fputs(",\n", out);
	fprintf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\"", span->trace_id, span->span_id);
	if (span->parent_id[0])
		fprintf(out, ",\"parentSpanId\":\"%s\"", span->parent_id);
	fputs(",\"name\":", out);
	export_write_text(out, span->name);
	fprintf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64 "\"",
	        span->is_server ? KIND_SERVER : KIND_INTERNAL, span->start_ns, span->end_ns);
	write_attributes(out, span);
	if (strcmp(span->otlp_events, "[]") != 0) {
		fputs(",\"events\":", out);
		json_write_made(out, span->otlp_events, strlen(span->otlp_events));
	}
	fprintf(out, ",\"status\":{%s%.0d}}", span->status ? "\"code\":" : "", (int)span->status);
	return !writer->failed;
}

static bool end_otlp(void *ended, bool complete)
{
	struct writer *writer = ended;

	if (!complete)
		return true;
	fputs(writer->has_resource ? "\n]}]}]}\n" : "{\"resourceSpans\":[]}\n", writer->out);
	return !ferror(writer->out);
}

const struct export_format export_otlp_traces = {
	.name = "otlp-traces",
	.summary = "spans in OTLP's JSON: collectors, Jaeger, Tempo; ns",
	.writer_size = sizeof(struct writer),
	.has_arrays = true,
	.add_span = add_span,
	.end = end_otlp,
};
