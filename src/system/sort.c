/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qsort(): libc's takes the host's memory. Stable, by merging; without memory by inserting from a heap, which
 * is not.
 */
#include <stdlib.h>
#include <string.h>

struct order {
	size_t size;
	int (*compare)(const void *, const void *, void *);
	void *context;
};

static void exchange(char *a, char *b, size_t size)
{
	while (size--) {
		char byte = *a;

		*a++ = *b;
		*b++ = byte;
	}
}

static void sink(const struct order *order, char *items, size_t at, size_t count)
{
	for (size_t below; (below = 2 * at + 1) < count; at = below) {
		char *next = items + below * order->size;

		if (below + 1 < count && order->compare(next, next + order->size, order->context) < 0) {
			below++;
			next += order->size;
		}
		if (order->compare(items + at * order->size, next, order->context) >= 0)
			return;
		exchange(items + at * order->size, next, order->size);
	}
}

static void sort_in_place(const struct order *order, char *items, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sink(order, items, i, count);
	for (size_t left = count; left-- > 1;) {
		exchange(items, items + left * order->size, order->size);
		sink(order, items, 0, left);
	}
}

/* `room` has space for the lower half. */
static void merge_sort(const struct order *order, char *items, size_t count, char *room)
{
	const size_t size = order->size, lower = count / 2;
	char *a = room, *const a_end = room + lower * size, *b = items + lower * size;
	char *const b_end = items + count * size, *to = items;

	if (count < 2)
		return;
	merge_sort(order, items, lower, room);
	merge_sort(order, b, count - lower, room);
	if (order->compare(b - size, b, order->context) <= 0)
		return;
	memcpy(room, items, lower * size);
	for (; a < a_end && b < b_end; to += size) {
		char **from = order->compare(a, b, order->context) <= 0 ? &a : &b;

		memcpy(to, *from, size);
		*from += size;
	}
	memcpy(to, a, (size_t)(a_end - a));
}

void qsort_r(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *),
             void *context)
{
	const struct order order = { size, compare, context };
	char small[1024];
	size_t needed = (count + 1) / 2 * size;
	char *room = needed <= sizeof(small) ? small : malloc(needed);

	if (room)
		merge_sort(&order, items, count, room);
	else
		sort_in_place(&order, items, count);
	if (room != small)
		free(room);
}

static int compare_two(const void *a, const void *b, void *compare)
{
	return (*(int (**)(const void *, const void *))compare)(a, b);
}

void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	qsort_r(items, count, size, compare_two, &compare);
}
