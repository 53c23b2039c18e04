/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile in pieces, compressed by gzip. Protocol buffers that follow each other are read as one,
 * whose repeated fields are those of all. Strings are written as they come, so none is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "base/index.h"
#include "base/vector.h"

#include "profile.pb-c.h"

/* Start with a zeroed struct. */
struct pprof_pieces {
	gzFile file;           /* NULL: not open */
	bool failed;           /* kept until the end: no caller checks each piece */
	VECTOR(uint8_t) piece; /* a packed message */
	int64_t string_count;
	struct index string_index; /* of strings that may come again */
	VECTOR(int64_t) strings;   /* their numbers, from 1; 0: not written yet */
};

/* False: no memory, or errno. */
bool pprof_pieces_open(struct pprof_pieces *pieces, FILE *out);
void pprof_pieces_message(struct pprof_pieces *pieces, const Pprof__Profile *message);

/* Room for so many bytes, NULL: no memory; and writes these, up to `end`. */
uint8_t *pprof_pieces_room(struct pprof_pieces *pieces, size_t size);
void pprof_pieces_write(struct pprof_pieces *pieces, const uint8_t *end);

/* The number of a string; of one that does not come again. */
int64_t pprof_pieces_string(struct pprof_pieces *pieces, const char *text);
int64_t pprof_pieces_new_string(struct pprof_pieces *pieces, const char *text);

/* Frees the memory. False: something failed, in errno if it is not 0. */
bool pprof_pieces_close(struct pprof_pieces *pieces);
