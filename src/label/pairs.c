/* SPDX-License-Identifier: Apache-2.0 */
#include "label/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

/* The brackets of an object. */
#define OPEN 0x7b
#define CLOSE 0x7d

/* --- pairs ---------------------------------------------------------------------------- */

static char *copy(const char *text, size_t size, size_t most)
{
	return text_repair(text, size > most ? text_cut(text, most) : size);
}

static char *copy_key(const char *key)
{
	return copy(key, strlen(key), LABEL_KEY_MAX);
}

static struct label_pair *find(const struct label_pairs *pairs, const char *key)
{
	for (size_t i = 0; i < pairs->items.count; i++)
		if (strcmp(pairs->items.items[i].key, key) == 0)
			return &pairs->items.items[i];
	return NULL;
}

const struct label_pair *label_pairs_find(const struct label_pairs *pairs, const char *key)
{
	return find(pairs, key);
}

static void free_pair(struct label_pair *pair)
{
	free(pair->key);
	free(pair->text);
	free(pair->unit);
}

/* Takes the three texts over. */
static bool parse(struct label_pairs *pairs, struct label_pair pair, bool has_unit)
{
	bool is_whole = pair.key && pair.text && (pair.unit || !has_unit);
	bool is_wanted =
		is_whole && pairs->items.count < LABELS_OF_SET_MAX && pair.key[0] && !find(pairs, pair.key);

	if (is_wanted && vector_push(&pairs->items, pair))
		return true;
	free_pair(&pair);
	return is_whole && !is_wanted;
}

bool label_pairs_add(struct label_pairs *pairs, const char *key, size_t key_size, const char *text,
                     size_t text_size)
{
	return parse(pairs,
	             (struct label_pair){ .key = copy(key, key_size, LABEL_KEY_MAX),
	                                  .text = copy(text, text_size, LABEL_TEXT_MAX) },
	             false);
}

bool label_pairs_add_number(struct label_pairs *pairs, const char *key, int64_t number, const char *unit)
{
	return parse(pairs,
	             (struct label_pair){ .key = copy_key(key),
	                                  .text = text_format("%lld", (long long)number),
	                                  .unit = unit ? copy_key(unit) : NULL,
	                                  .is_number = true },
	             unit != NULL);
}

bool label_pairs_move(struct label_pairs *pairs, struct label_pairs *from)
{
	bool has_memory = true;

	for (size_t i = 0; i < from->items.count; i++)
		has_memory &= parse(pairs, from->items.items[i], false);
	vector_free(&from->items);
	return has_memory;
}

void label_pairs_remove(struct label_pairs *pairs, const char *key)
{
	char *own = copy_key(key);
	struct label_pair *pair = own ? find(pairs, own) : NULL;

	if (pair) {
		free_pair(pair);
		*pair = pairs->items.items[--pairs->items.count];
	}
	free(own);
}

void label_pairs_free(struct label_pairs *pairs)
{
	for (size_t i = 0; i < pairs->items.count; i++)
		free_pair(&pairs->items.items[i]);
	vector_free(&pairs->items);
}

/* --- from JSON ------------------------------------------------------------------------- */

struct reader {
	const char *at;
	char *room; /* for the texts */
	struct label_pairs *pairs;
	bool is_set; /* not what people wrote */
	bool has_memory;
};

static bool parse_value(struct reader *reader, const char *key)
{
	const char *text = json_read_text(&reader->at, &reader->room);
	bool is_negative = reader->at[strspn(reader->at, " \t\r\n")] == '-';
	uint64_t number;

	if (!key[0] && !reader->is_set)
		return false;
	if (text) {
		reader->has_memory &= label_pairs_add(reader->pairs, key, strlen(key), text, strlen(text));
		return true;
	}
	if (json_read_null(&reader->at))
		return true;
	if (!json_read_integer(&reader->at, &number) || (!is_negative && number > INT64_MAX))
		return false; /* a number of another kind, or something else */
	reader->has_memory &= label_pairs_add_number(reader->pairs, key, (int64_t)number, NULL);
	return true;
}

/* Only of the labels that came with it. */
static bool parse_unit(struct reader *reader, const char *key)
{
	const char *unit = json_read_text(&reader->at, &reader->room);
	struct label_pair *pair = find(reader->pairs, key);

	if (unit && pair && pair->is_number && !pair->unit)
		reader->has_memory &= (pair->unit = copy_key(unit)) != NULL;
	return unit != NULL;
}

static bool parse_object(struct reader *reader, bool (*parse_member)(struct reader *reader, const char *key))
{
	const char *key;

	if (!json_read(&reader->at, OPEN))
		return false;
	if (json_read(&reader->at, CLOSE))
		return true;
	do {
		key = json_read_text(&reader->at, &reader->room);
		if (!key || !json_read(&reader->at, ':') || !parse_member(reader, key))
			return false;
	} while (json_read(&reader->at, ','));
	return json_read(&reader->at, CLOSE);
}

/* `*is_sound`: all of the text was objects as they have to be. False: no memory. */
static bool read_objects(struct label_pairs *pairs, const char *text, bool is_set, bool *is_sound)
{
	char *room = malloc(strlen(text) + 1);
	struct reader reader = { text, room, pairs, is_set, room != NULL };

	*is_sound = room && (json_read(&reader.at, 0) ||
	                     (parse_object(&reader, parse_value) &&
	                      (json_read(&reader.at, 0) ||
	                       (is_set && parse_object(&reader, parse_unit) && json_read(&reader.at, 0)))));
	free(room);
	return reader.has_memory;
}

bool label_pairs_add_set(struct label_pairs *pairs, const char *set)
{
	struct label_pairs own = { .items = { 0 } };
	bool is_sound, has_memory = read_objects(&own, set, true, &is_sound);

	if (!is_sound)
		label_pairs_free(&own);
	return label_pairs_move(pairs, &own) && has_memory;
}

bool label_pairs_add_json(struct label_pairs *pairs, const char *json)
{
	bool is_sound;

	return read_objects(pairs, json, false, &is_sound) && is_sound;
}

/* --- to JSON --------------------------------------------------------------------------- */

static int compare_pairs(const void *left, const void *right)
{
	const struct label_pair *a = left, *b = right;

	return strcmp(a->key, b->key);
}

static size_t room_of(const char *text)
{
	return text ? JSON_TEXT_MAX(strlen(text)) : 0;
}

static char *put_member(char *to, const char *key, const char *text, bool is_number)
{
	to = json_put_text(to, key, strlen(key));
	*to++ = ':';
	return is_number ? stpcpy(to, text) : json_put_text(to, text, strlen(text));
}

/* Puts `{"key":value,…}`, or nothing where no pair has a value. Returns its end. */
static char *put_object(char *to, const struct label_pairs *pairs, bool units)
{
	char before = OPEN;

	for (size_t i = 0; i < pairs->items.count; i++) {
		const struct label_pair *pair = &pairs->items.items[i];

		if (units && !pair->unit)
			continue;
		*to++ = before;
		to = put_member(to, pair->key, units ? pair->unit : pair->text, !units && pair->is_number);
		before = ',';
	}
	if (before == ',')
		*to++ = CLOSE;
	return to;
}

char *label_pairs_text(struct label_pairs *pairs)
{
	size_t size = sizeof("{}{}");
	char *text;

	for (size_t i = 0; i < pairs->items.count; i++) {
		const struct label_pair *pair = &pairs->items.items[i];

		size += 2 * room_of(pair->key) + room_of(pair->text) + room_of(pair->unit) + sizeof(":,:,");
	}
	if (!(text = malloc(size)))
		return NULL;
	if (pairs->items.count > 1)
		qsort(pairs->items.items, pairs->items.count, sizeof(*pairs->items.items), compare_pairs);
	*put_object(put_object(text, pairs, false), pairs, true) = 0;
	return text;
}

char *label_pair_member(const struct label_pair *pair)
{
	char *text = malloc(room_of(pair->key) + room_of(pair->text) + sizeof(":"));

	if (text)
		*put_member(text, pair->key, pair->text, pair->is_number) = 0;
	return text;
}

/* --- sets ----------------------------------------------------------------------------- */

uint64_t label_set_number(const char *set, size_t size)
{
	uint64_t number = hash_bytes(set, size).first;

	return number ? number : 1;
}

size_t label_set_object(const char *set)
{
	const char *at = set;

	for (bool is_text = false; *at && (is_text || *at != CLOSE); at++) {
		is_text ^= *at == '"';
		at += is_text && *at == '\\' && at[1];
	}
	return (size_t)(at - set) + (*at == CLOSE);
}
