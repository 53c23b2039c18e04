/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text_sums.h"

#include <stdlib.h>
#include <string.h>

bool text_sums_add(struct text_sums *sums, const char *text, int64_t amount)
{
	uint32_t number = INTERNER_NO_MEMORY;

	if (vector_reserve(&sums->list, sums->list.count + 1))
		number = interner_number(&sums->texts, text);
	if (number == INTERNER_NO_MEMORY)
		return false;
	if (number == sums->list.count)
		vector_add(&sums->list)->text = sums->texts.texts.items[number]; /* has room */
	int64_t *sum = &sums->list.items[number].sum;
	if (__builtin_add_overflow(*sum, amount, sum))
		*sum = amount > 0 ? INT64_MAX : INT64_MIN;
	return true;
}

static int compare_texts(const void *left, const void *right)
{
	const struct text_sum *a = left, *b = right;

	return strcmp(a->text, b->text);
}

void text_sums_sort(struct text_sums *sums)
{
	if (sums->list.count)
		qsort(sums->list.items, sums->list.count, sizeof(*sums->list.items), compare_texts);
}

void text_sums_free(struct text_sums *sums)
{
	vector_free(&sums->list);
	interner_free(&sums->texts);
}
