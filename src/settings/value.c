/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value is a number or a text, and its form defines how it is written: every way to set one gives a
 * text, and goes through here.
 */
#include "settings/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "queryprof.h"
#include "settings/number.h"

/* --- messages -------------------------------------------------------------- */

static char *allowed(const struct setting *setting)
{
	char min[SETTINGS_NUMBER_SIZE], max[SETTINGS_NUMBER_SIZE];

	if (setting->allowed)
		return text_format("expected %s", setting->allowed);
	if (setting->form == SETTING_IS_SWITCH)
		return text_format("expected 0 (off) or 1 (on)");
	if (setting_is_text(setting))
		return text_format("expected a text of at most %lld bytes", (long long)setting->max);
	settings_number_text(setting->min, setting->unit, min);
	settings_number_text(setting->max, setting->unit, max);
	if (setting->zero)
		return text_format("expected 0 (%s) or %s to %s", setting->zero, min, max);
	return text_format("expected %s to %s", min, max);
}

char *setting_error(const struct setting *setting, const char *value, int code, char *reason)
{
	int shown = (int)text_fit(value, SETTING_SHOWN);
	char *why = code == QP_INVALID && !reason ? allowed(setting) : reason;
	char *text = text_format("%s = %.*s%s: %s", setting->name, shown, value, value[shown] ? "…" : "",
	                         why ? why : "out of memory");
	free(why);
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

/* A relative path is made absolute, because another thread opens the file later, when the host's
 * working directory may have changed. */
static bool parse_path(const char *text, struct setting_value *value)
{
	char folder[SETTING_PATH_BYTES + 1];
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

bool setting_parse(const struct setting *setting, const char *text, struct setting_value *value)
{
	char number[128];
	size_t size;

	if (setting_is_text(setting)) {
		if (strlen(text) > (size_t)setting->max)
			return false;
		if (setting->parse)
			return setting->parse(text, value);
		if (setting->form == SETTING_IS_PATH)
			return parse_path(text, value);
		if (setting->form == SETTING_IS_PATHS)
			return parse_paths(text, value);
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
	if (setting->form == SETTING_IS_SWITCH)
		return parse_switch(number, &value->number);
	return settings_number(number, setting->unit, &value->number) &&
	       ((setting->zero && !value->number) ||
	        (value->number >= setting->min && value->number <= setting->max));
}

/* --- where values stand ---------------------------------------------------- */

void setting_write(const struct setting *setting, void *storage, const struct setting_value *value)
{
	if (setting_is_text(setting))
		memcpy(storage, value->text, strlen(value->text) + 1);
	else if (setting->form == SETTING_IS_SWITCH)
		__atomic_store_n((bool *)storage, value->number != 0, __ATOMIC_RELAXED);
	else
		__atomic_store_n((int64_t *)storage, value->number, __ATOMIC_RELAXED);
}

void setting_read(const struct setting *setting, const void *storage, struct setting_value *value)
{
	if (setting_is_text(setting))
		memcpy(value->text, storage, strlen((const char *)storage) + 1);
	else if (setting->form == SETTING_IS_SWITCH)
		value->number = __atomic_load_n((const bool *)storage, __ATOMIC_RELAXED);
	else
		value->number = __atomic_load_n((const int64_t *)storage, __ATOMIC_RELAXED);
}
