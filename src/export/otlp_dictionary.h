/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of OpenTelemetry's profiles: tables that samples refer to by number. Item 0 of each is
 * empty. An item is packed when it arrives, so memory holds only packed items.
 */
#pragma once

#include "base/hash.h"
#include "base/interner.h"
#include "base/tally.h"
#include "base/vector.h"
#include "export/export.h"

/* Indexed by the export's own number; 0: not written. */
struct otlp_numbers {
	VECTOR(int32_t) list;
};

/* Start with a zeroed struct. */
struct otlp_dictionary {
	bool failed;
	VECTOR(uint8_t) bytes; /* the message, without its head */
	struct interner strings;
	struct tally functions, attributes, links; /* by the hash of the item */
	struct otlp_numbers locations, mappings, stacks;
	int32_t location_count, mapping_count, stack_count;
};

/* Writes the empty items, if it has not yet. */
void otlp_dictionary_begin(struct otlp_dictionary *dictionary);

/* The number of the item, which is written if it is new. An error is kept in `failed`. */
int32_t otlp_dictionary_string(struct otlp_dictionary *dictionary, const char *text);
int32_t otlp_dictionary_stack(struct otlp_dictionary *dictionary, const struct export_stack *stack);

/* `text` NULL: the value is a number. */
int32_t otlp_dictionary_attribute(struct otlp_dictionary *dictionary, const char *key, const char *text,
                                  int64_t value, const char *unit);

/* A span's link, by its ids (export_labels.link); 0 for "". */
int32_t otlp_dictionary_link(struct otlp_dictionary *dictionary, const char *digits);

void otlp_dictionary_free(struct otlp_dictionary *dictionary);
