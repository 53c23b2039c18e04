/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a table of entries in shared memory (collect/shared_entries.h).
 */
#pragma once

#include <stdint.h>

struct shared_front {
	uint32_t used;    /* atomic: of the entries, those before it */
	uint32_t is_left; /* a forked child writes here, too */
};
