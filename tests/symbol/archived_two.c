/* SPDX-License-Identifier: Apache-2.0 */
/* The second member of the archive, see archived_one.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archived.h"

#ifdef ARCHIVED_OTHER_TEXT
#define TEXT "another text"
#else
#define TEXT "a text"
#endif

const unsigned char archived_classes[256] = { ['a'] = 1, ['b'] = 2, ['z'] = 3 };
static int state;

ARCHIVED_KEEP static int add_to_state(int value)
{
	state += value;
	return state;
}

/* Only a static function calls this one. */
ARCHIVED_KEEP static int inner_step(struct archived *item)
{
	char buffer[64];
	snprintf(buffer, sizeof(buffer), "%s:%d", item->text, item->value);
	return (int)strlen(buffer) + add_to_state(item->value);
}

#if ARCHIVED_VERSION == 1
ARCHIVED_KEEP static int outer_step(struct archived *item)
{
	int total = 0;
	for (int i = 0; i < 3; i++)
		total += inner_step(item);
	return total;
}
#define OUTER outer_step
#else
ARCHIVED_KEEP static int outer_steps_back(struct archived *item)
{
	int total = 0;
	for (int i = 0; i < 3; i++)
		total -= inner_step(item);
	return total;
}
#define OUTER outer_steps_back
#endif

static int compare_items(const void *left, const void *right)
{
	const struct archived *a = left, *b = right;
	return (a->value > b->value) - (a->value < b->value);
}

int archived_run(struct archived *items, size_t count)
{
	qsort(items, count, sizeof(*items), compare_items);
	int total = archived_count(TEXT);
	for (size_t i = 0; i < count; i++)
		total += OUTER(&items[i]);
	return total;
}

int archived_state(void)
{
	return add_to_state(0);
}
