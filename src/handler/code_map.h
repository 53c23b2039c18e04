/*
 * What executable code is mapped, as the unwinder sees it inside the signal
 * handler: an immutable table sorted by address, replaced whole by src/modules
 * and published with one pointer store.
 *
 * `generation` is part of every rule-cache key and of every sample, so a rule or
 * an address can never be read against a map other than its own.
 */
#ifndef QUERYPROF_HANDLER_CODE_MAP_H
#define QUERYPROF_HANDLER_CODE_MAP_H

#include <stdint.h>

struct code_range {
	uintptr_t start, end;       /* one executable segment */
	uintptr_t eh_frame_hdr;     /* address of .eh_frame_hdr, 0: none */
	uintptr_t eh_frame_hdr_end; /* end of the segment that holds it */
	uintptr_t image_start, image_end; /* the whole object: bounds for CFI reads */
};

struct code_map {
	uint32_t generation; /* from 1, never reused within a process */
	uint32_t count;
	struct code_range ranges[];
};

/* Makes `map` the one that handlers use from now on. The previous map must stay
 * readable until no handler can be using it (sampler_quiesce). */
void code_map_publish(const struct code_map *map);

/* Async-signal-safe. NULL before the first publish. */
const struct code_map *code_map_current(void);

#endif
