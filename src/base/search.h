/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order: comparisons for qsort(), and binary search.
 */
#pragma once

#include <stddef.h>

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
