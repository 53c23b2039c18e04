/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order: comparisons for qsort(), and binary search.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Defines a comparison of two structs by a field, or by two, as qsort() and bsearch() call it. */
#define COMPARE_BY(name, type, field) COMPARE_BY_TWO(name, type, field, field)
#define COMPARE_BY_TWO(name, type, first, second)                                                            \
	static int name(const void *left, const void *right)                                                 \
	{                                                                                                    \
		const type *a = left, *b = right;                                                            \
                                                                                                             \
		if (a->first != b->first)                                                                    \
			return a->first < b->first ? -1 : 1;                                                 \
		return (a->second > b->second) - (a->second < b->second);                                    \
	}

/* For how many of the items 0 to count - 1 the condition holds. The items are sorted so that these
 * come first. `i` is the name that the condition has for an item's number.
 *
 *	size_t before = SEARCH_COUNT(map->count, i, map->items[i].start <= address);
 */
#define SEARCH_COUNT(count, i, ...)                                                                          \
	({                                                                                                   \
		size_t low_ = 0, high_ = (count);                                                            \
		while (low_ < high_) {                                                                       \
			const size_t i = low_ + (high_ - low_) / 2;                                          \
			if (__VA_ARGS__)                                                                     \
				low_ = i + 1;                                                                \
			else                                                                                 \
				high_ = i;                                                                   \
		}                                                                                            \
		low_;                                                                                        \
	})

/* The place of an item whose number would be there if numbers had no gaps, or 0. */
static inline size_t search_likely(size_t count, int64_t first, int64_t number)
{
	const uint64_t at = (uint64_t)number - (uint64_t)first;

	return at < count ? at : 0;
}

/* The place of the item whose first member, an int64_t, is that number, or `count`. They are sorted by it.
 * Numbers of rows mostly have no gaps, so a place is tried before a search. */
static inline size_t search_number(const void *items, size_t size, size_t count, int64_t number)
{
	const char *const bytes = items;
#define NUMBER_AT(at) (*(const int64_t *)(const void *)(bytes + (at)*size))
	size_t at = count ? search_likely(count, NUMBER_AT(0), number) : 0;

	if (count && NUMBER_AT(at) != number)
		at = SEARCH_COUNT(count, i, NUMBER_AT(i) < number);
	return at < count && NUMBER_AT(at) == number ? at : count;
#undef NUMBER_AT
}
