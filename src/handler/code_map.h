/*
 * What executable code is mapped, as the unwinder sees it inside the signal
 * handler: an immutable table sorted by address, replaced whole by src/modules
 * and published with one pointer store.
 *
 * `generation` is part of every sample, so that an address is never read against
 * a map other than its own. Rules live as long as the code they were made for:
 * maps that differ only by objects that came share one rule cache; once an
 * object went, `epoch` moves on and an empty cache takes its place. So a rule can
 * never be used for code that took another's address.
 */
#ifndef QUERYPROF_HANDLER_CODE_MAP_H
#define QUERYPROF_HANDLER_CODE_MAP_H

#include <stdint.h>

struct code_range {
	uintptr_t start, end;       /* one executable segment */
	uintptr_t eh_frame_hdr;     /* address of .eh_frame_hdr, 0: none */
	uintptr_t eh_frame_hdr_end; /* its end */
	uintptr_t cfi_start, cfi_end;     /* readable memory around it: bounds for CFI reads */
	uintptr_t image_start, image_end; /* the whole object */
};

struct code_map {
	uint32_t generation; /* from 1, never reused within a process */
	uint32_t epoch;      /* the generation at which an object last went or changed */
	/* unwind_cache_bytes of memory, zero-filled when the epoch began, shared by
	 * the maps of one epoch. NULL: no cache. */
	uint64_t *rules;
	uint32_t count;
	struct code_range ranges[];
};

/* Makes `map` the one that handlers use from now on. The previous map, and its
 * rules when the epoch moved on, must stay readable until no handler can be using
 * them (sampler_quiesce). */
void code_map_publish(const struct code_map *map);

/* Async-signal-safe. NULL before the first publish. */
const struct code_map *code_map_current(void);

/* The range that holds `address`, NULL when none does. Async-signal-safe. */
const struct code_range *code_map_find(const struct code_map *map, uintptr_t address);

#endif
