/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own JSON format: a list of functions, and profiles of stacks and weights in the order of time.
 *
 * Each statement is a profile with all its runs in sequence, the costliest statement first, because
 * speedscope has a menu of profiles. Adjacent equal stacks are merged.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/functions.h"
#include "export/groups.h"
#include "export/text.h"
#include "queryprof.h"
#include "wire/sample_type.h"

struct piece {
	const struct export_stack *stack;
	int64_t value;
};

struct profile {
	VECTOR(struct piece) pieces; /* in the order of time */
};

struct writer {
	EXPORT_WRITER;
	struct groups groups;
	VECTOR(struct profile) profiles; /* by the group's number */
	struct functions functions;
	VECTOR(char *) stacks; /* in written form, by number; NULL: not yet */
};

static bool add_speedscope(void *to, const struct export_sample *sample)
{
	struct writer *writer = to;
	uint32_t group = groups_add(&writer->groups, sample);

	if (group == GROUPS_NO_MEMORY || (group == writer->profiles.count && !vector_add(&writer->profiles)))
		return false;
	struct profile *profile = &writer->profiles.items[group];
	size_t count = profile->pieces.count;
	if (count && profile->pieces.items[count - 1].stack == sample->stack) {
		profile->pieces.items[count - 1].value += sample->value;
		return true;
	}
	return vector_push(&profile->pieces, (struct piece){ sample->stack, sample->value });
}

/* The functions' numbers, root first. NULL: no memory. */
static char *make_stack(struct writer *writer, const struct export_stack *stack)
{
	const char *between = "";
	bool fine = true;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	fputc('[', to);
	for (size_t i = stack->count; i-- > 0;)
		for (size_t j = export_stack_frame(stack, i)->line_count; j-- > 0; between = ",") {
			uint32_t number = functions_add(&writer->functions, export_stack_frame(stack, i), j);
			fine &= number != FUNCTIONS_NO_MEMORY;
			fprintf(to, "%s%" PRIu32, between, number);
		}
	fputc(']', to);
	if (fclose(to) == 0 && fine)
		return text;
	free(text);
	return NULL;
}

static bool write_stack(struct writer *writer, const struct export_stack *stack)
{
	char **text = vector_at(&writer->stacks, stack->number);

	if (!text || (!*text && !(*text = make_stack(writer, stack))))
		return false;
	fputs(*text, writer->out);
	return true;
}

/* The unit's name in speedscope; "none" for a unit that it does not have. */
static const char *unit_name(const char *unit)
{
	return strcmp(unit, UNIT_NS) == 0 ? "nanoseconds" : strcmp(unit, UNIT_BYTES) == 0 ? "bytes" : "none";
}

static bool write_profile(struct writer *writer, uint32_t number)
{
	const struct profile *profile = &writer->profiles.items[number];
	const struct group *group = &writer->groups.list.items[number];

	fputs("{\"type\":\"sampled\",\"name\":", writer->out);
	export_write_text(writer->out, group->name);
	fprintf(writer->out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[",
	        unit_name(writer->info->unit), group->value);
	for (size_t i = 0; i < profile->pieces.count; i++) {
		fputs(i ? "," : "", writer->out);
		if (!write_stack(writer, profile->pieces.items[i].stack))
			return false;
	}
	fputs("],\n\"weights\":[", writer->out);
	for (size_t i = 0; i < profile->pieces.count; i++)
		fprintf(writer->out, "%s%" PRId64, i ? "," : "", profile->pieces.items[i].value);
	fputs("]}", writer->out);
	return true;
}

static void write_functions(const struct writer *writer)
{
	FILE *out = writer->out;

	fputs("\"shared\":{\"frames\":[", out);
	for (size_t i = 0; i < writer->functions.list.count; i++) {
		const struct export_function *function = &writer->functions.list.items[i];
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
		export_write_text(out, function->name);
		if (function->file[0] || function->module) {
			fputs(",\"file\":", out);
			export_write_text(out, function->file[0] ? function->file : function->module->path);
		}
		fputc('}', out);
	}
	fputs("]}", out);
}

static bool write_file(struct writer *writer)
{
	uint32_t *order = groups_order(&writer->groups);
	bool fine = order;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"queryprof@" QUERYPROF_VERSION "\",\n\"name\":",
	      writer->out);
	export_write_text(writer->out, writer->info->title);
	fputs(",\n\"activeProfileIndex\":0,\n\"profiles\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->groups.list.count; i++) {
		fputs(i ? ",\n" : "\n", writer->out);
		fine = write_profile(writer, order[i]);
	}
	fputs("],\n", writer->out);
	/* All functions are known only now. */
	write_functions(writer);
	fputs("}\n", writer->out);
	free(order);
	return fine && !ferror(writer->out);
}

static bool end_speedscope(void *ended, bool complete)
{
	struct writer *writer = ended;
	bool fine = !complete || write_file(writer);

	for (size_t i = 0; i < writer->profiles.count; i++)
		vector_free(&writer->profiles.items[i].pieces);
	vector_free(&writer->profiles);
	for (size_t i = 0; i < writer->stacks.count; i++)
		free(writer->stacks.items[i]);
	vector_free(&writer->stacks);
	groups_free(&writer->groups);
	functions_free(&writer->functions);
	return fine;
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.summary = "for speedscope.app, one profile per statement, by time; ns",
	.has_root = true,
	.labels_read = EXPORT_LABELS_STATEMENT,
	.writer_size = sizeof(struct writer),
	.add = add_speedscope,
	.end = end_speedscope,
};
