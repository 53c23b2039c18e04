/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scan of the loader's list of objects. The caller holds no lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/code_map.h"
#include "base/vector.h"

struct scan_object {
	uint64_t bias, start, end;
	uint64_t file_size;
	int64_t mtime_ns;
	size_t path, build_id; /* offsets in `text` */
};

struct scan {
	uint64_t adds, subs; /* the loader's counters of dlopen and dlclose */
	VECTOR(struct scan_object) objects;
	VECTOR(struct code_range) ranges;
	VECTOR(char) text;
	uint32_t watches;
	struct code_watch watch[CODE_MAP_WATCHES]; /* of the same moment as the counters */
	bool cut;                                  /* private to scan.c */
};

/* 0 or an errno value. Free the scan in both cases. */
int scan_modules(struct scan *scan);
void scan_free(struct scan *scan);

/* Adds the code that queryprof has made until now, which the loader's counters do not count. */
int scan_add_made_code(struct scan *scan);

/* The loader's counters alone. */
void scan_counters(uint64_t *adds, uint64_t *subs);
