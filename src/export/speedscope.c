/*
 * speedscope's own format, JSON: a list of functions, and profiles of stacks and
 * weights in the order of time.
 *
 * One profile a statement, all its runs one after the other, the costliest first:
 * that is what its menu of profiles has room for. Neighbours with equal stacks are
 * put together.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "queryprof.h"
#include "export/functions.h"
#include "export/groups.h"
#include "export/export.h"
#include "export/text.h"

struct piece {
	const struct report_stack *stack;
	int64_t ns;
};

struct profile {
	struct piece *pieces;
	size_t count, capacity;
};

struct writer {
	FILE *out;
	const struct report_info *info;
	struct groups groups;
	struct profile *profiles; /* by the group's number */
	uint32_t profile_count;
	struct functions functions;
};

static void *begin_speedscope(FILE *out, const struct report_info *info)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (writer)
		*writer = (struct writer){ .out = out, .info = info };
	return writer;
}

static bool add_piece(struct profile *profile, const struct report_sample *sample)
{
	if (profile->count && profile->pieces[profile->count - 1].stack == sample->stack) {
		profile->pieces[profile->count - 1].ns += sample->ns;
		return true;
	}
	if (profile->count == profile->capacity) {
		size_t capacity = profile->capacity ? profile->capacity * 2 : 64;
		struct piece *grown = reallocarray(profile->pieces, capacity, sizeof(*grown));
		if (!grown)
			return false;
		profile->pieces = grown;
		profile->capacity = capacity;
	}
	profile->pieces[profile->count++] = (struct piece){ sample->stack, sample->ns };
	return true;
}

static bool add_speedscope(void *to, const struct report_sample *sample)
{
	struct writer *writer = to;
	uint32_t group = groups_add(&writer->groups, sample);

	if (group == GROUPS_NO_MEMORY)
		return false;
	if (group == writer->profile_count) {
		struct profile *grown = reallocarray(writer->profiles, group + 1u, sizeof(*grown));
		if (!grown)
			return false;
		writer->profiles = grown;
		writer->profiles[writer->profile_count++] = (struct profile){ 0 };
	}
	return add_piece(&writer->profiles[group], sample);
}

/* The functions' numbers, root first. */
static bool write_stack(struct writer *writer, const struct report_stack *stack)
{
	const char *between = "";

	fputc('[', writer->out);
	for (size_t i = stack->count; i-- > 0;)
		for (size_t j = stack->frames[i]->line_count; j-- > 0; between = ",") {
			uint32_t number = functions_add(&writer->functions, stack->frames[i], j);
			if (number == FUNCTIONS_NO_MEMORY)
				return false;
			fprintf(writer->out, "%s%" PRIu32, between, number);
		}
	fputc(']', writer->out);
	return true;
}

static bool write_profile(struct writer *writer, uint32_t number)
{
	const struct profile *profile = &writer->profiles[number];
	const struct group *group = &writer->groups.list[number];

	fputs("{\"type\":\"sampled\",\"name\":", writer->out);
	text_write_json(writer->out, group->name);
	fprintf(writer->out,
	        ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[",
	        group->ns);
	for (size_t i = 0; i < profile->count; i++) {
		fputs(i ? "," : "", writer->out);
		if (!write_stack(writer, profile->pieces[i].stack))
			return false;
	}
	fputs("],\n\"weights\":[", writer->out);
	for (size_t i = 0; i < profile->count; i++)
		fprintf(writer->out, "%s%" PRId64, i ? "," : "", profile->pieces[i].ns);
	fputs("]}", writer->out);
	return true;
}

static void write_functions(const struct writer *writer)
{
	FILE *out = writer->out;

	fputs("\"shared\":{\"frames\":[", out);
	for (uint32_t i = 0; i < writer->functions.count; i++) {
		const struct report_function *function = &writer->functions.list[i];
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
		text_write_json(out, function->name);
		if (function->file[0] || function->module) {
			fputs(",\"file\":", out);
			text_write_json(out, function->file[0] ? function->file : function->module->path);
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
	text_write_json(writer->out, writer->info->title);
	fputs(",\n\"activeProfileIndex\":0,\n\"profiles\":[", writer->out);
	for (uint32_t i = 0; fine && i < writer->groups.count; i++) {
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

	for (uint32_t i = 0; i < writer->profile_count; i++)
		free(writer->profiles[i].pieces);
	free(writer->profiles);
	groups_free(&writer->groups);
	functions_free(&writer->functions);
	free(writer);
	return fine;
}

const struct report_format report_speedscope = {
	.name = "speedscope",
	.summary = "for speedscope.app, a profile a statement in time order; ns",
	.begin = begin_speedscope,
	.add = add_speedscope,
	.end = end_speedscope,
};
