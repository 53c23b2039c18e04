/*
 * A hash table from lines to their sums. See the header.
 */
#include "trace/collapse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"

struct entry {
	struct hash key;
	char *line;
	int64_t weight;
};

struct collapse {
	struct hash_table lines;
	char *line; /* of the stack that is being put together */
	size_t size, capacity;
};

struct collapse *collapse_create(void)
{
	struct collapse *collapse = calloc(1, sizeof(*collapse));

	if (collapse)
		collapse->lines = (struct hash_table)HASH_TABLE_OF(struct entry, SIZE_MAX);
	return collapse;
}

static void free_line(void *context, void *entry)
{
	(void)context;
	free(((struct entry *)entry)->line);
}

void collapse_free(struct collapse *collapse)
{
	if (!collapse)
		return;
	hash_table_each(&collapse->lines, free_line, NULL);
	hash_table_free(&collapse->lines);
	free(collapse->line);
	free(collapse);
}

bool collapse_frame(struct collapse *collapse, const char *name)
{
	size_t needed = collapse->size + strlen(name) + 2;

	if (needed > collapse->capacity) {
		char *grown = realloc(collapse->line, needed * 2);
		if (!grown)
			return false;
		collapse->line = grown;
		collapse->capacity = needed * 2;
	}
	if (collapse->size)
		collapse->line[collapse->size++] = ';';
	for (; *name; name++)
		collapse->line[collapse->size++] = *name == ';'                 ? ':'
		                                   : (unsigned char)*name < ' ' ? ' '
		                                                                : *name;
	collapse->line[collapse->size] = 0;
	return true;
}

bool collapse_stack(struct collapse *collapse, int64_t weight)
{
	if (!collapse->size && !collapse_frame(collapse, "(no stack)"))
		return false;
	struct hash key = hash_bytes(collapse->line, collapse->size);
	struct entry *entry = hash_table_find(&collapse->lines, key);
	if (!entry) {
		char *line = strdup(collapse->line);
		entry = line ? hash_table_add(&collapse->lines, key) : NULL;
		if (!entry) {
			free(line);
			return false;
		}
		entry->line = line;
	}
	/* SQL may pass any number. */
	if (__builtin_add_overflow(entry->weight, weight, &entry->weight))
		entry->weight = weight > 0 ? INT64_MAX : INT64_MIN;
	collapse->size = 0;
	return true;
}

struct sorting {
	const struct entry **entries;
	size_t count;
};

static void collect(void *context, void *entry)
{
	struct sorting *sorting = context;
	sorting->entries[sorting->count++] = entry;
}

static int compare_lines(const void *left, const void *right)
{
	const struct entry *const *a = left, *const *b = right;
	return strcmp((*a)->line, (*b)->line);
}

bool collapse_write(struct collapse *collapse, FILE *out)
{
	struct sorting sorting = { calloc(collapse->lines.count + 1, sizeof(*sorting.entries)), 0 };

	if (!sorting.entries)
		return false;
	hash_table_each(&collapse->lines, collect, &sorting);
	qsort(sorting.entries, sorting.count, sizeof(*sorting.entries), compare_lines);
	for (size_t i = 0; i < sorting.count; i++)
		fprintf(out, "%s %" PRId64 "\n", sorting.entries[i]->line, sorting.entries[i]->weight);
	free(sorting.entries);
	return !ferror(out);
}
