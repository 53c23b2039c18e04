/* SPDX-License-Identifier: Apache-2.0 */
#include "frames/collapse.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

void collapse_free(struct collapse *collapse)
{
	text_sums_free(&collapse->lines);
	vector_free(&collapse->line);
}

bool collapse_frame(struct collapse *collapse, const char *name)
{
	size_t size = collapse->line.count;

	if (!vector_reserve(&collapse->line, size + strlen(name) + 2))
		return false;
	char *to = collapse->line.items + size;
	if (size)
		*to++ = ';';
	strcpy(to, name);
	text_blank_controls(to);
	for (; *to; to++)
		if (*to == ';')
			*to = ':';
	collapse->line.count = (size_t)(to - collapse->line.items);
	return true;
}

bool collapse_stack(struct collapse *collapse, int64_t weight)
{
	if (!collapse->line.count && !collapse_frame(collapse, "(no stack)"))
		return false;
	collapse->line.count = 0;
	return text_sums_add(&collapse->lines, collapse->line.items, weight);
}

bool collapse_write(struct collapse *collapse, FILE *out)
{
	text_sums_sort(&collapse->lines);
	for (size_t i = 0; i < collapse->lines.list.count; i++)
		fprintf(out, "%s %" PRId64 "\n", collapse->lines.list.items[i].text,
		        collapse->lines.list.items[i].sum);
	return !ferror(out);
}
