/* SPDX-License-Identifier: Apache-2.0 */
#include "export/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NAME_BYTES 200

/* The statement without line breaks and repeated blanks, shortened if it is long. */
static char *make_name(const struct export_labels *labels)
{
	if (!labels->statement[0])
		return labels->query_id[0] ? text_format("query %s", labels->query_id) : strdup("no query");
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
		*to = *from;
		memcpy(name + text_cut(name, (size_t)(to - name)), ellipsis, sizeof(ellipsis));
	} else {
		*to = 0;
	}
	return name;
}

static struct hash key_of(const struct export_labels *labels)
{
	/* A query without a text is a separate group. */
	if (!labels->statement[0])
		return hash_bytes(labels->query_id, strlen(labels->query_id));
	uint64_t words[] = { 1, (uint64_t)labels->statement_hash };
	return hash_words(words, 2);
}

uint32_t groups_find(struct groups *groups, const struct export_labels *labels)
{
	struct group *group = index_item(&groups->index, key_of(labels), &groups->list);

	if (group && !group->name)
		group->name = make_name(labels);
	return group && group->name ? (uint32_t)(group - groups->list.items) : GROUPS_NO_MEMORY;
}

uint32_t groups_add(struct groups *groups, const struct export_sample *sample)
{
	uint32_t *number = vector_at(&groups->of_labels, sample->labels->number);

	if (!number)
		return GROUPS_NO_MEMORY;
	if (!*number)
		*number = groups_find(groups, sample->labels) + 1; /* GROUPS_NO_MEMORY is 0 */
	if (*number)
		groups->list.items[*number - 1].value += sample->value;
	return *number - 1;
}

static int compare_numbers(const void *left, const void *right, void *list)
{
	const uint32_t *a = left, *b = right;
	const struct group *first = (const struct group *)list + *a;
	const struct group *second = (const struct group *)list + *b;

	if (first->value != second->value)
		return first->value > second->value ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

uint32_t *groups_order(const struct groups *groups)
{
	uint32_t *order = malloc((groups->list.count + 1) * sizeof(*order));

	if (!order)
		return NULL;
	for (uint32_t i = 0; i < groups->list.count; i++)
		order[i] = i;
	qsort_r(order, groups->list.count, sizeof(*order), compare_numbers, groups->list.items);
	return order;
}

void groups_free(struct groups *groups)
{
	for (size_t i = 0; i < groups->list.count; i++)
		free(groups->list.items[i].name);
	vector_free(&groups->list);
	vector_free(&groups->of_labels);
	index_free(&groups->index);
}
