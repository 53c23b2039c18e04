/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One growable array.
 *
 *	VECTOR(struct sum) sums = { 0 };
 *	struct sum *sum = vector_add(&sums);   // zeroed; NULL: no memory
 *	for (size_t i = 0; i < sums.count; i++) use(&sums.items[i]);
 *	vector_free(&sums);
 *
 * Adding may move the items, so pointers to them are valid until then. A failed call
 * leaves the vector as it was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define VECTOR(type)                                                                                         \
	struct {                                                                                             \
		type *items;                                                                                 \
		size_t count, room;                                                                          \
	}

/* Room for `wanted` items in all. False: no memory. */
#define vector_reserve(vector, wanted)                                                                       \
	({                                                                                                   \
		__typeof__(vector) reserved_ = (vector);                                                     \
		const size_t wanted_ = (wanted);                                                             \
		void *items_ = reserved_->items;                                                             \
		if (!items_ || wanted_ > reserved_->room)                                                    \
			items_ = vector_grow(items_, &reserved_->room, wanted_, sizeof(*reserved_->items));  \
		if (items_)                                                                                  \
			reserved_->items = items_;                                                           \
		items_ != NULL;                                                                              \
	})

/* A new last item, zeroed. NULL: no memory. */
#define vector_add(vector)                                                                                   \
	({                                                                                                   \
		__typeof__(vector) added_ = (vector);                                                        \
		__typeof__(added_->items) item_ = NULL;                                                      \
		if (vector_reserve(added_, added_->count + 1)) {                                             \
			item_ = &added_->items[added_->count++];                                             \
			__builtin_memset(item_, 0, sizeof(*item_));                                          \
		}                                                                                            \
		item_;                                                                                       \
	})

/* Appends the item. False: no memory. */
#define vector_push(vector, ...)                                                                             \
	({                                                                                                   \
		__typeof__((vector)->items) pushed_ = vector_add(vector);                                    \
		if (pushed_)                                                                                 \
			*pushed_ = (__VA_ARGS__);                                                            \
		pushed_ != NULL;                                                                             \
	})

/* The item with that number; new items up to it are zeroed. NULL: out of memory. */
#define vector_at(vector, number)                                                                            \
	({                                                                                                   \
		__typeof__(vector) at_ = (vector);                                                           \
		const size_t index_ = (number);                                                              \
		bool has_item_ = true;                                                                       \
		while (has_item_ && at_->count <= index_)                                                    \
			has_item_ = vector_add(at_) != NULL;                                                 \
		has_item_ ? &at_->items[index_] : NULL;                                                      \
	})

/* Frees the memory. The vector is empty then and can be used again. */
#define vector_free(vector)                                                                                  \
	do {                                                                                                 \
		__typeof__(vector) freed_ = (vector);                                                        \
		vector_drop(freed_->items);                                                                  \
		freed_->items = NULL;                                                                        \
		freed_->count = freed_->room = 0;                                                            \
	} while (0)

/* For the macros: `items` with room for `wanted` of them, NULL without memory; and
 * free(). The result is never NULL otherwise, even for 0 items. */
void *vector_grow(void *items, size_t *room, size_t wanted, size_t item_size);
void vector_drop(void *items);
