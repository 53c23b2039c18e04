/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pprof profile in pieces, compressed by gzip. Readers merge consecutive protocol buffers: repeated
 * fields are concatenated. Strings are written immediately, so none is kept.
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
	bool failed;           /* kept until the end, so that no caller checks each piece */
	VECTOR(uint8_t) piece; /* a packed message */
	int64_t string_count;
	struct index string_index; /* of strings that may be repeated */
	VECTOR(int64_t) strings;   /* their numbers, from 1; 0: not written yet */
};

/* False: no memory, or errno. */
bool pprof_pieces_open(struct pprof_pieces *pieces, FILE *out);
void pprof_pieces_message(struct pprof_pieces *pieces, const Pprof__Profile *message);

/* Room for that many bytes, NULL: no memory; the second function writes them, up to `end`. */
uint8_t *pprof_pieces_room(struct pprof_pieces *pieces, size_t size);
void pprof_pieces_write(struct pprof_pieces *pieces, const uint8_t *end);

/* A string's number. The second function is for strings that are not repeated. */
int64_t pprof_pieces_string(struct pprof_pieces *pieces, const char *text);
int64_t pprof_pieces_new_string(struct pprof_pieces *pieces, const char *text);

/* Frees the memory. False: something failed; errno has the reason if it is not 0. */
bool pprof_pieces_close(struct pprof_pieces *pieces);
