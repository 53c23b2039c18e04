/*
 * A hash table of numbers over an array of groups. See the header.
 */
#include "export/groups.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 200

struct entry {
	struct hash key;
	uint32_t number;
};

/* The statement without its line ends and repeated blanks, cut where it is long. */
static char *make_name(const struct report_labels *labels)
{
	if (!labels->statement[0]) {
		char *name;
		int size = labels->query_id[0] ? asprintf(&name, "query %s", labels->query_id)
		                               : asprintf(&name, "no query");
		return size < 0 ? NULL : name;
	}
	static const char ellipsis[] = "\xe2\x80\xa6";
	char *name = malloc(NAME_BYTES + sizeof(ellipsis)), *to = name;
	const char *from = labels->statement;
	if (!name)
		return NULL;
	for (; *from && to - name < NAME_BYTES; from++) {
		char c = (unsigned char)*from <= ' ' ? ' ' : *from;
		if (c != ' ' || (to > name && to[-1] != ' '))
			*to++ = c;
	}
	if (*from) {
		/* Not inside a character. */
		while (((unsigned char)*from & 0xc0) == 0x80) {
			from--;
			to--;
		}
		memcpy(to, ellipsis, sizeof(ellipsis));
	} else {
		*to = 0;
	}
	return name;
}

static struct hash key_of(const struct report_labels *labels)
{
	/* Without a text it is a query of its own. */
	if (!labels->statement[0])
		return hash_bytes(labels->query_id, strlen(labels->query_id));
	uint64_t words[] = { 1, (uint64_t)labels->statement_hash };
	return hash_words(words, 2);
}

static uint32_t find_group(struct groups *groups, const struct report_labels *labels)
{
	struct hash key = key_of(labels);

	groups->table.entry_size = sizeof(struct entry);
	groups->table.limit = SIZE_MAX;
	struct entry *entry = hash_table_find(&groups->table, key);
	if (entry)
		return entry->number;
	if (groups->count == groups->capacity) {
		uint32_t capacity = groups->capacity ? groups->capacity * 2 : 64;
		struct group *grown = reallocarray(groups->list, capacity, sizeof(*grown));
		if (!grown)
			return GROUPS_NO_MEMORY;
		groups->list = grown;
		groups->capacity = capacity;
	}
	char *name = make_name(labels);
	entry = name ? hash_table_add(&groups->table, key) : NULL;
	if (!entry) {
		free(name);
		return GROUPS_NO_MEMORY;
	}
	entry->number = groups->count;
	groups->list[groups->count] = (struct group){ .name = name };
	return groups->count++;
}

uint32_t groups_add(struct groups *groups, const struct report_sample *sample)
{
	uint32_t number = find_group(groups, sample->labels);

	if (number != GROUPS_NO_MEMORY) {
		groups->list[number].samples++;
		groups->list[number].ns += sample->ns;
	}
	return number;
}

static int compare_numbers(const void *left, const void *right, void *list)
{
	const uint32_t *a = left, *b = right;
	const struct group *first = (const struct group *)list + *a;
	const struct group *second = (const struct group *)list + *b;

	if (first->ns != second->ns)
		return first->ns > second->ns ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

uint32_t *groups_order(const struct groups *groups)
{
	uint32_t *order = malloc((groups->count + 1u) * sizeof(*order));

	if (!order)
		return NULL;
	for (uint32_t i = 0; i < groups->count; i++)
		order[i] = i;
	qsort_r(order, groups->count, sizeof(*order), compare_numbers, groups->list);
	return order;
}

void groups_free(struct groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++)
		free(groups->list[i].name);
	free(groups->list);
	hash_table_free(&groups->table);
	*groups = (struct groups){ 0 };
}
