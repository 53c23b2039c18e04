/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A record of the ring: a set was made (`until_ns` 0, with its text) or freed. */
struct label_record {
	uint64_t number;
	uint64_t from_ns, until_ns; /* CLOCK_REALTIME */
	uint64_t address;           /* of the trampoline's code */
	uint32_t trampoline;        /* 0: none of its own */
	uint32_t size;
	char text[];
};
