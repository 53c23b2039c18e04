/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of OpenTelemetry's profiles: tables to which samples refer by number. Item 0 of each is
 * empty. An item is packed when it comes, so memory is that of what is written.
 */
#pragma once

#include "base/index.h"
#include "base/interner.h"
#include "base/vector.h"
#include "export/export.h"

/* By the number of the export's; 0: not written. */
struct otlp_numbers {
	VECTOR(int32_t) list;
};

/* Start with a zeroed struct. */
struct otlp_dictionary {
	bool failed;
	VECTOR(uint8_t) bytes; /* the message, without its head */
	struct interner strings;
	struct index functions, attributes, links;
	struct otlp_numbers locations, mappings, stacks;
	int32_t location_count, mapping_count, stack_count;
};

/* Writes the empty items, unless they are there. */
void otlp_dictionary_begin(struct otlp_dictionary *dictionary);

/* The numbers of items, which are written when they are new. An error is kept in `failed`. */
int32_t otlp_dictionary_string(struct otlp_dictionary *dictionary, const char *text);
int32_t otlp_dictionary_stack(struct otlp_dictionary *dictionary, const struct export_stack *stack);

/* `text` NULL: a number. */
int32_t otlp_dictionary_attribute(struct otlp_dictionary *dictionary, const char *key, const char *text,
                                  int64_t value, const char *unit);

/* Of a span by its ids, see export_labels; 0 for "". */
int32_t otlp_dictionary_link(struct otlp_dictionary *dictionary, const char *digits);

void otlp_dictionary_free(struct otlp_dictionary *dictionary);
