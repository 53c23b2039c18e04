/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One setting's values: what is allowed, how it is read from text, where it stands, and
 * what a message says of one that is no good.
 */
#ifndef QUERYPROF_SETTINGS_VALUE_H
#define QUERYPROF_SETTINGS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings/settings.h"

#define PATH_BYTES 4095  /* of a path, without the zero */
#define SETTING_SHOWN 60 /* bytes of a bad value that a message repeats */

struct process_settings;

enum setting_form { NUMBER, SWITCH, TEXT, PATH, PATHS, LABELS, WORDS };

struct setting {
	struct setting_info info;
	enum setting_form form;
	bool is_hosts; /* SQL may not change it */
	/* WORDS only: whether the text is of them, and what is. */
	bool (*is_words)(const char *text);
	const char *words;
	size_t offset; /* in session_settings or process_settings */
	/* Process-wide ones: makes the change happen before it is remembered. A QP_ code
	 * with a malloc'ed reason. */
	int (*apply)(const struct process_settings *wanted, char **reason);
};

/* A checked value: a number, or the text. */
struct setting_value {
	int64_t number;
	char text[PATH_BYTES + 1];
};

/* Reads `text` as a value of the setting; false when it is not allowed. */
bool setting_parse(const struct setting *setting, const char *text, struct setting_value *value);

/* In `block`, the structure that the setting's offset is of. Scalars are read by other
 * threads without a lock, hence stored atomically. */
void setting_write(const struct setting *setting, void *block, const struct setting_value *value);
void setting_read(const struct setting *setting, const void *block, struct setting_value *value);

/* --- messages: malloc'ed, NULL without memory --------------------------------- */

/* The allowed values, for a message. */
char *setting_allowed(const struct setting *setting);

/* `name = value: reason`, which frees the reason. */
char *setting_error(const struct setting *setting, const char *value, char *reason);

#endif
