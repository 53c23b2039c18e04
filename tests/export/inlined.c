/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes a writer an artificial stack with inlined functions, from two threads of one query, and prints the
 * writer's output on stdout, for test_inlined.py.
 *
 *   inlined FORMAT
 */
#include <stdio.h>
#include <string.h>

#include "export/formats.h"

static const struct export_module module = {
	.path = "/usr/lib/libx.so",
	.name = "libx.so",
	.build_id = "cafe",
	.start = 0x1000,
	.end = 0x2000,
};

static const struct export_module program = {
	.number = 1,
	.path = "/usr/bin/app",
	.name = "app",
	.build_id = "",
	.start = 0x3000,
	.end = 0x4000,
};

/* small() inlined into middle<…>(), inlined into large(), at one address; main() called large(). */
static const struct export_line inlined[] = {
	{ "small", "_Z5smallv", "x.h", 3 },
	{ "middle<[u8; 4]>", "_Z6middlev", "x.h", 7 },
	{ "large", "_Z5largev", "x.cpp", 20 },
};
static const struct export_line outer[] = { { "main", "main", "main.c", 5 } };

static const struct export_frame frames[] = {
	{ .number = 0, .address = 0x1234, .module = &module, .line_count = 3, .lines = inlined },
	{ .number = 1, .address = 0x3800, .module = &program, .line_count = 1, .lines = outer },
};

int main(int argc, char **argv)
{
	const struct export_frame *pointers[] = { &frames[0], &frames[1] };
	const struct export_stack stack = { .count = 2, .frames = pointers };
	const struct export_labels labels = {
		.query_id = "q",
		.thread = "t (1)",
		.database = "",
		.statement = "SELECT 1",
		.program = "",
		.script = "",
		.labels = "",
		.root = "",
		.statement_hash = 1,
	};
	const struct export_sample sample = {
		.stack = &stack,
		.labels = &labels,
		.time_ns = 1000,
		.period_ns = 10,
		.weight = 2,
		.value = 20,
		.trace_type = "CPU",
	};
	struct export_labels other = labels;
	struct export_sample second = sample;
	const struct export_info info = {
		.trace_type = "CPU",
		.unit = "ns",
		.is_timed = true,
		.title = "constructed",
		.executable = "/usr/bin/app",
		.inlines = true,
	};
	const struct export_format *format;

	for (size_t i = 0; argc == 2 && (format = export_format_at(i)); i++) {
		if (strcmp(format->name, argv[1]) != 0)
			continue;
		other.number = 1;
		other.thread = "u (2)";
		second.labels = &other;
		void *writer = export_begin(format, stdout, &info);
		bool added = writer && format->add(writer, &sample) && format->add(writer, &sample) &&
		             format->add(writer, &second);
		return writer && export_end(format, writer, added) && added ? 0 : 1;
	}
	fprintf(stderr, "usage: inlined FORMAT\n");
	return 2;
}
