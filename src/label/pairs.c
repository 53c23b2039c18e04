/* SPDX-License-Identifier: Apache-2.0 */
#include "label/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

/* The brackets of an object. */
#define OPEN 0x7b
#define CLOSE 0x7d

/* --- JSON strings --------------------------------------------------------------------- */

/* Bytes that are no character become U+FFFD: the result is JSON, whatever the host gave. */
static char *encode(const char *text, size_t size, size_t most)
{
	char *json = malloc(6 * (size < most ? size : most) + 9), *to = json;
	const unsigned char *at = (const unsigned char *)text, *end = at + size;

	if (!json)
		return NULL;
	*to++ = '"';
	while (at < end && (size_t)((const char *)at - text) < most) {
		size_t bytes = *at < 0x80 ? 1 : text_character_within((const char *)at, (size_t)(end - at));

		if (bytes == 0 || *at < 0x20 || *at == 0x7f) {
			to += sprintf(to, "\\u%04x", bytes == 0 ? 0xfffdu : *at);
			bytes = 1;
		} else {
			if (*at == '"' || *at == '\\')
				*to++ = '\\';
			for (size_t i = 0; i < bytes; i++)
				*to++ = (char)at[i];
		}
		at += bytes;
	}
	*to++ = '"';
	*to = '\0';
	return json;
}

/* Takes the \uXXXX at `*at`. False: there is none. */
static bool take_unit(const char **at, unsigned *unit)
{
	char digits[5] = "";

	if ((*at)[0] != '\\' || (*at)[1] != 'u')
		return false;
	strncpy(digits, *at + 2, 4);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return false;
	*unit = (unsigned)strtoul(digits, NULL, 16);
	*at += 6;
	return true;
}

static char *write_character(char *to, unsigned code)
{
	static const unsigned char firsts[] = { 0, 0xc0, 0xe0, 0xf0 };
	unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	*to++ = (char)(firsts[more] | code >> 6 * more);
	while (more--)
		*to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
	return to;
}

bool label_decode_number(const char **at, char **to)
{
	const char *behind;
	unsigned code, low;

	if (!take_unit(at, &code))
		return false;
	behind = *at;
	if (code >> 10 == 0x36 && take_unit(&behind, &low) && low >> 10 == 0x37) {
		code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
		*at = behind;
	}
	*to = write_character(*to, code >> 11 == 0x1b ? 0xfffd : code);
	return true;
}

static char *decode(const char *string, size_t *size)
{
	static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
	char *text = *string == '"' ? malloc(strlen(string)) : NULL, *to = text;

	if (!text)
		return NULL;
	for (string++; *string && *string != '"';) {
		if (label_decode_number(&string, &to))
			continue;
		if (*string != '\\') {
			*to++ = *string++;
		} else if (*++string) { /* a file of others may end here */
			const char *letter = strchr(letters, *string);

			*to++ = letter ? meant[letter - letters] : *string;
			string++;
		}
	}
	*to = '\0';
	*size = (size_t)(to - text);
	return text;
}

char *label_decode(const char *string)
{
	size_t size;

	return decode(string, &size);
}

/* The same string as encode() writes it. Takes `string`. */
static char *encode_again(char *string)
{
	size_t size = 0;
	char *text = string ? decode(string, &size) : NULL,
	     *made = text ? encode(text, size, SIZE_MAX) : NULL;

	free(text);
	free(string);
	return made;
}

/* --- pairs ---------------------------------------------------------------------------- */

static struct label_pair *find(const struct label_pairs *pairs, const char *key)
{
	for (size_t i = 0; i < pairs->items.count; i++)
		if (strcmp(pairs->items.items[i].key, key) == 0)
			return &pairs->items.items[i];
	return NULL;
}

static void free_pair(struct label_pair *pair)
{
	free(pair->key);
	free(pair->value);
	free(pair->unit);
}

/* Takes the three texts over. */
static bool take(struct label_pairs *pairs, struct label_pair pair, bool has_unit)
{
	bool is_whole = pair.key && pair.value && (pair.unit || !has_unit);
	bool is_wanted = is_whole && pairs->items.count < LABELS_OF_SET_MAX && strlen(pair.key) > 2 &&
	                 !find(pairs, pair.key);

	if (is_wanted && vector_push(&pairs->items, pair))
		return true;
	free_pair(&pair);
	return is_whole && !is_wanted;
}

bool label_pairs_add(struct label_pairs *pairs, const char *key, size_t key_size, const char *text,
                     size_t text_size)
{
	return take(pairs,
	            (struct label_pair){ encode(key, key_size, LABEL_KEY_MAX),
	                                 encode(text, text_size, LABEL_TEXT_MAX), NULL },
	            false);
}

bool label_pairs_add_number(struct label_pairs *pairs, const char *key, int64_t number, const char *unit)
{
	return take(pairs,
	            (struct label_pair){ encode(key, strlen(key), LABEL_KEY_MAX),
	                                 text_format("%lld", (long long)number),
	                                 unit ? encode(unit, strlen(unit), LABEL_KEY_MAX) : NULL },
	            unit != NULL);
}

/* Behind the JSON value at `at`: a string, or a number. */
static const char *value_end(const char *at)
{
	if (*at != '"')
		return at + strcspn(at, ",}");
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return at + (*at == '"');
}

static bool is_number(const char *at, const char *end)
{
	at += *at == '-';
	return at < end && strspn(at, "0123456789") == (size_t)(end - at) && (*at != '0' || end - at == 1);
}

static bool is_string(const char *at, const char *end)
{
	if (*at != '"' || end - at < 2)
		return false;
	for (at++; at < end - 1 && (unsigned char)*at >= 0x20; at++)
		if (*at == '\\' && !strchr("\"\\/bfnrt", *++at) &&
		    (*at != 'u' || strspn(at + 1, "0123456789abcdefABCDEF") < 4))
			return false;
	return at == end - 1 && *at == '"';
}

/* Calls `each`, unless it is NULL, for each member of the object at `at`. Returns what is behind it, NULL: no
 * memory, or no object as label_pairs_text() writes them. */
static const char *each_member(const char *at, struct label_pairs *pairs,
                               bool (*each)(struct label_pairs *pairs, char *key, char *value))
{
	while (*at == OPEN || *at == ',') {
		const char *key = at + 1, *key_end = value_end(key);
		const char *value = key_end + 1, *end;

		if (*key == CLOSE)
			return key + 1;
		if (*key != '"' || *key_end != ':')
			return NULL;
		end = value_end(value);
		if (!is_number(value, end) && !is_string(value, end))
			return NULL; /* it would go into JSON as it is */
		if (each && !each(pairs, strndup(key, (size_t)(key_end - key)),
		                  strndup(value, (size_t)(end - value))))
			return NULL;
		at = end;
	}
	return *at == CLOSE ? at + 1 : NULL;
}

/* Keys are compared as texts: others, as ClickHouse, write them with other escapes. */
static bool add_member(struct label_pairs *pairs, char *key, char *value)
{
	return take(pairs, (struct label_pair){ encode_again(key), value, NULL }, false);
}

/* Only of the labels that came with it. */
static bool add_unit(struct label_pairs *pairs, char *key, char *unit)
{
	struct label_pair *pair = (key = encode_again(key)) && unit ? find(pairs, key) : NULL;
	bool is_whole = key && unit;

	if (pair && !pair->unit && pair->value[0] != '"') {
		pair->unit = unit;
		unit = NULL;
	}
	free(key);
	free(unit);
	return is_whole;
}

static bool is_set(const char *text)
{
	const char *units = each_member(text, NULL, NULL);

	return units && (*units != OPEN || each_member(units, NULL, NULL));
}

bool label_pairs_add_set(struct label_pairs *pairs, const char *set)
{
	struct label_pairs own = { .items = { 0 } };
	const char *units = is_set(set) ? each_member(set, &own, add_member) : "";
	bool is_done = units && (*units != OPEN || each_member(units, &own, add_unit));

	return label_pairs_move(pairs, &own) && is_done;
}

bool label_pairs_move(struct label_pairs *pairs, struct label_pairs *from)
{
	bool has_memory = true;

	for (size_t i = 0; i < from->items.count; i++)
		has_memory &= take(pairs, from->items.items[i], false);
	vector_free(&from->items);
	return has_memory;
}

const char *label_pairs_find(const struct label_pairs *pairs, const char *key, size_t key_size)
{
	char *json = encode(key, key_size, LABEL_KEY_MAX);
	const struct label_pair *found = json ? find(pairs, json) : NULL;

	free(json);
	return found ? found->value : NULL;
}

void label_pairs_remove(struct label_pairs *pairs, const char *key)
{
	char *json = encode(key, strlen(key), LABEL_KEY_MAX);
	struct label_pair *pair = json ? find(pairs, json) : NULL;

	if (pair) {
		free_pair(pair);
		*pair = pairs->items.items[--pairs->items.count];
	}
	free(json);
}

void label_pairs_free(struct label_pairs *pairs)
{
	for (size_t i = 0; i < pairs->items.count; i++)
		free_pair(&pairs->items.items[i]);
	vector_free(&pairs->items);
}

static int compare_pairs(const void *left, const void *right)
{
	const struct label_pair *a = left, *b = right;

	return strcmp(a->key, b->key);
}

/* Writes `{"key":value,…}`, or nothing where no pair has a value. Returns its end. */
static char *write_object(char *to, const struct label_pairs *pairs, bool units)
{
	char before = OPEN;

	for (size_t i = 0; i < pairs->items.count; i++) {
		const struct label_pair *pair = &pairs->items.items[i];
		const char *value = units ? pair->unit : pair->value;

		if (!value)
			continue;
		*to++ = before;
		to = stpcpy(to, pair->key);
		*to++ = ':';
		to = stpcpy(to, value);
		before = ',';
	}
	if (before == ',')
		*to++ = CLOSE;
	*to = 0;
	return to;
}

char *label_pairs_text(struct label_pairs *pairs)
{
	size_t size = sizeof("{}{}");
	char *text;

	for (size_t i = 0; i < pairs->items.count; i++) {
		const struct label_pair *pair = &pairs->items.items[i];

		size += 2 * strlen(pair->key) + strlen(pair->value) + (pair->unit ? strlen(pair->unit) : 0) +
		        4;
	}
	if (!(text = malloc(size)))
		return NULL;
	if (pairs->items.count > 1)
		qsort(pairs->items.items, pairs->items.count, sizeof(*pairs->items.items), compare_pairs);
	write_object(write_object(text, pairs, false), pairs, true);
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

	while (*at && *at != CLOSE)
		at = *at == '"' ? value_end(at) : at + 1;
	return (size_t)(at - set) + (*at == CLOSE);
}
