/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of labels as text. The text of a set is a JSON object without blanks, its keys in order,
 * each once; behind it, where numbers have units, a second object with the units of their keys:
 *
 *   {"bytes":4096,"route":"users#show"}{"bytes":"bytes"}
 *
 * So equal sets have equal texts, and a hash of the text is a number that names the set, in every
 * process and in every file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* Longer texts are cut, and labels beyond the most are left out. */
#define LABEL_KEY_MAX 128
#define LABEL_TEXT_MAX 1024
#define LABELS_OF_SET_MAX 64

/* One label, its texts in UTF-8. A number's text has its digits. */
struct label_pair {
	char *key, *text, *unit; /* unit NULL: none */
	bool is_number;
};

/* Start with a zeroed struct. The first of two labels with one key is kept. False: no memory. */
struct label_pairs {
	VECTOR(struct label_pair) items;
};
bool label_pairs_add(struct label_pairs *pairs, const char *key, size_t key_size, const char *text,
                     size_t text_size);
bool label_pairs_add_number(struct label_pairs *pairs, const char *key, int64_t number, const char *unit);
bool label_pairs_add_set(struct label_pairs *pairs, const char *set); /* as text; empty if there is none */
bool label_pairs_move(struct label_pairs *pairs, struct label_pairs *from); /* which is empty then */
const struct label_pair *label_pairs_find(const struct label_pairs *pairs, const char *key); /* NULL: none */
void label_pairs_remove(struct label_pairs *pairs, const char *key);
void label_pairs_free(struct label_pairs *pairs);

/* Labels that people write: adds the members of a JSON object. Each member is a text, an integer,
 * or null, which is no label. "" is an empty object. False: the text is something else, or memory
 * ran out. */
bool label_pairs_add_json(struct label_pairs *pairs, const char *json);

/* The set, malloc'ed; "" without labels. NULL: no memory. */
char *label_pairs_text(struct label_pairs *pairs);

/* "key":value as the set has it, malloc'ed. NULL: no memory. */
char *label_pair_member(const struct label_pair *pair);

/* The number of the set, never 0. */
uint64_t label_set_number(const char *set, size_t size);

/* The end of the set's object. */
size_t label_set_object(const char *set);
