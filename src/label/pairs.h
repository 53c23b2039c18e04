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
#ifndef QUERYPROF_LABEL_PAIRS_H
#define QUERYPROF_LABEL_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

/* Longer texts are cut, and labels beyond the most are left out. */
#define LABEL_KEY_MAX 128
#define LABEL_TEXT_MAX 1024
#define LABELS_OF_SET_MAX 64

/* One label. All are JSON: `key` and `unit` with their quotes, `value` a string or a number. */
struct label_pair {
	char *key, *value, *unit; /* unit NULL: none */
};

/* Start with a zeroed struct. The first of two labels with one key is kept. False: no memory. */
struct label_pairs {
	VECTOR(struct label_pair) items;
};
bool label_pairs_add(struct label_pairs *pairs, const char *key, size_t key_size, const char *text,
                     size_t text_size);
bool label_pairs_add_number(struct label_pairs *pairs, const char *key, int64_t number, const char *unit);
bool label_pairs_add_set(struct label_pairs *pairs, const char *set); /* as text; nothing where it is none */
bool label_pairs_move(struct label_pairs *pairs, struct label_pairs *from); /* which is empty then */
const char *label_pairs_find(const struct label_pairs *pairs, const char *key,
                             size_t key_size); /* its value as JSON, NULL: there is none */
void label_pairs_remove(struct label_pairs *pairs, const char *key);
void label_pairs_free(struct label_pairs *pairs);

/* The set, malloc'ed; "" without labels. NULL: no memory. */
char *label_pairs_text(struct label_pairs *pairs);

/* The number of the set, never 0. */
uint64_t label_set_number(const char *set, size_t size);

/* Where the object of the set ends. */
size_t label_set_object(const char *set);

/* The texts of a JSON string, from its first quote; malloc'ed, NULL: no memory, or not one. */
char *label_decode(const char *string);

/* Writes the character of the \uXXXX, or of a pair of them, at `*at`: at most 4 bytes, of 6 or 12. Half a
 * pair is U+FFFD. False: there is none. */
bool label_decode_number(const char **at, char **to);

#endif
