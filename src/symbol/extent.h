/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses around a looked-up one for which the result is the same: [start, end). A look-up begins with
 * all addresses and cuts the extent at each border that it meets, so whoever stores the result with its
 * extent need not look the neighbours up.
 */
#pragma once

#include <stdint.h>

struct extent {
	uint64_t start, end;
};

#define EXTENT_ALL ((struct extent){ 0, UINT64_MAX })

/* `border` is the first address for which the result may differ. */
static inline void extent_cut(struct extent *extent, uint64_t address, uint64_t border)
{
	if (border > address)
		extent->end = border < extent->end ? border : extent->end;
	else
		extent->start = border > extent->start ? border : extent->start;
}
