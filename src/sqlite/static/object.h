/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges of a loaded object, from its program headers.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct static_range {
	uintptr_t start, end;
};

#define STATIC_RANGES_MAX 8

/* The ranges of an object to search. */
struct static_object {
	uintptr_t bias;
	struct static_range image;
	struct static_range code; /* its largest executable segment */
	/* Readable memory, constants that can be the table, and data that change. */
	struct static_range loaded[STATIC_RANGES_MAX], constants[STATIC_RANGES_MAX], data[STATIC_RANGES_MAX];
	unsigned loaded_count, constants_count, data_count;
	bool is_fixed; /* it does not move: addresses in it are not relocations */
};

void static_object_read(struct static_object *object, const struct dl_phdr_info *info);

static inline bool static_is_in(const struct static_range *range, uintptr_t address)
{
	return address - range->start < range->end - range->start;
}

/* Whether `size` bytes at the address are of the object's file, and can be read. */
bool static_is_loaded(const struct static_object *object, uintptr_t address, size_t size);
