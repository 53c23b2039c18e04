/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value is a number or a text, and its form says how it is written: every way to set
 * one gives text, and goes through here.
 */
#include "settings/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "label/pairs.h"
#include "settings/number.h"

_Static_assert(sizeof(uint64_t) == sizeof(int64_t), "one kind of number behind all of them");

/* --- messages -------------------------------------------------------------- */

char *setting_allowed(const struct setting *setting)
{
	const struct setting_info *info = &setting->info;
	const char *space = info->unit[0] ? " " : "";

	switch (setting->form) {
	case SWITCH: return text_format("allowed are 0 (off) and 1 (on)");
	case TEXT:
	case PATH:
	case PATHS: return text_format("allowed are texts of at most %lld bytes", (long long)info->max);
	case LABELS:
		return text_format(
			"allowed is a JSON object of texts and integers, as {\"tenant\":\"acme\"}, "
			"of at most %lld bytes",
			(long long)info->max);
	case WORDS: return text_format("allowed are %s", setting->words);
	case NUMBER: break;
	}
	if (info->zero)
		return text_format("allowed are 0 (%s) and %lld to %lld%s%s", info->zero,
		                   (long long)info->min, (long long)info->max, space, info->unit);
	return text_format("allowed are %lld to %lld%s%s", (long long)info->min, (long long)info->max, space,
	                   info->unit);
}

char *setting_error(const struct setting *setting, const char *value, char *reason)
{
	int shown = (int)text_fit(value, SETTING_SHOWN);
	char *text = text_format("%s = %.*s%s: %s", setting->info.name, shown, value, value[shown] ? "…" : "",
	                         reason ? reason : "out of memory");
	free(reason);
	return text;
}

/* --- reading values -------------------------------------------------------- */

static bool parse_switch(const char *text, int64_t *result)
{
	static const char *const words[][4] = { { "0", "off", "false", "no" }, { "1", "on", "true", "yes" } };

	for (int on = 0; on < 2; on++)
		for (int i = 0; i < 4; i++)
			if (!strcasecmp(text, words[on][i])) {
				*result = on;
				return true;
			}
	return false;
}

/* A relative path is made absolute: the file is opened later, by another thread,
 * wherever the host may stand then. */
static bool parse_path(const char *text, struct setting_value *value)
{
	char folder[PATH_BYTES + 1];
	int size;

	if (!*text || *text == '/') {
		memcpy(value->text, text, strlen(text) + 1);
		return true;
	}
	if (!getcwd(folder, sizeof(folder)))
		return false;
	size = snprintf(value->text, sizeof(value->text), "%s/%s", folder, text);
	return size > 0 && (size_t)size < sizeof(value->text);
}

/* Each of them as above. */
static bool parse_paths(const char *text, struct setting_value *value)
{
	struct setting_value *one = malloc(sizeof(*one));
	size_t size = 0;
	bool good = one;

	value->text[0] = 0;
	for (size_t length; good && *text; text += length + (text[length] == ':')) {
		size_t room = sizeof(value->text) - size;
		char *path;

		length = strcspn(text, ":");
		if (!length)
			continue;
		path = strndup(text, length);
		good = path && parse_path(path, one);
		if (good)
			size += (size_t)snprintf(value->text + size, room, "%s%s", size ? ":" : "",
			                         one->text);
		good = good && size < sizeof(value->text);
		free(path);
	}
	free(one);
	return good;
}

/* Its keys in order, as label/pairs.h has them. */
static bool parse_labels(const char *text, size_t room, struct setting_value *value)
{
	struct label_pairs pairs = { .items = { 0 } };
	char *set = label_pairs_add_json(&pairs, text) ? label_pairs_text(&pairs) : NULL;
	bool fits = set && strlen(set) <= room;

	if (fits)
		memcpy(value->text, set, strlen(set) + 1);
	free(set);
	label_pairs_free(&pairs);
	return fits;
}

bool setting_parse(const struct setting *setting, const char *text, struct setting_value *value)
{
	const struct setting_info *info = &setting->info;
	char number[128];
	size_t size;

	if (info->is_text) {
		if (strlen(text) > (size_t)info->max)
			return false;
		if (setting->form == PATH)
			return parse_path(text, value);
		if (setting->form == PATHS)
			return parse_paths(text, value);
		if (setting->form == LABELS)
			return parse_labels(text, (size_t)info->max, value);
		if (setting->form == WORDS && !setting->is_words(text))
			return false;
		memcpy(value->text, text, strlen(text) + 1);
		return true;
	}
	text += strspn(text, " \t\n");
	size = strlen(text);
	while (size && strchr(" \t\n", text[size - 1]))
		size--;
	if (size >= sizeof(number))
		return false;
	memcpy(number, text, size);
	number[size] = 0;
	if (setting->form == SWITCH)
		return parse_switch(number, &value->number);
	return settings_number(number, info->unit, &value->number) &&
	       ((info->zero && !value->number) || (value->number >= info->min && value->number <= info->max));
}

/* --- where values stand ---------------------------------------------------- */

void setting_write(const struct setting *setting, void *block, const struct setting_value *value)
{
	char *place = (char *)block + setting->offset;

	if (setting->info.is_text)
		memcpy(place, value->text, strlen(value->text) + 1);
	else if (setting->form == SWITCH)
		__atomic_store_n((bool *)place, value->number != 0, __ATOMIC_RELAXED);
	else
		__atomic_store_n((int64_t *)place, value->number, __ATOMIC_RELAXED);
}

void setting_read(const struct setting *setting, const void *block, struct setting_value *value)
{
	const char *place = (const char *)block + setting->offset;

	if (setting->info.is_text)
		memcpy(value->text, place, strlen(place) + 1);
	else if (setting->form == SWITCH)
		value->number = __atomic_load_n((const bool *)place, __ATOMIC_RELAXED);
	else
		value->number = __atomic_load_n((const int64_t *)place, __ATOMIC_RELAXED);
}
