/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A setting, declared in the room that uses it.
 *
 *	SETTING_NUMBER(max_threads, "", 1, 100000, 16, .name = "query_profiler_max_threads",
 *	               .description = "Threads that are sampled at the full rate at once");
 *
 * This defines the setting and the variable that holds its value, set to the default. The linker collects the
 * settings in a section, as it does the locks. PRAGMA, SQL, the C interface, the environment, and the options
 * of `record` all come from that list (settings.h). The room reads the variable: a number or a switch by a
 * relaxed atomic load, a text by settings_copy(). If a change needs work, .apply does it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTING_PATH_BYTES 4095 /* of a text at most, without the zero */
#define SETTING_WORDS_BYTES 60

/* Texts from SETTING_IS_TEXT on. Paths are made absolute; those of SETTING_IS_PATHS are separated
 * by colons. */
enum setting_form {
	SETTING_IS_NUMBER,
	SETTING_IS_SWITCH,
	SETTING_IS_TEXT,
	SETTING_IS_PATH,
	SETTING_IS_PATHS,
};

/* A checked value of a setting: a number or a text. */
struct setting_value {
	const struct setting *setting;
	int64_t number;
	char text[SETTING_PATH_BYTES + 1];
};

struct setting {
	const char *name;
	const char *description;
	enum setting_form form;
	const char *unit;                /* "": none */
	int64_t min, max, default_value; /* of a text: max is its largest size in bytes */
	const char *default_text;
	const char *zero;    /* the meaning of 0 if it is allowed in addition to min..max, else NULL */
	const char *allowed; /* of a text: what a message has after "expected", NULL: any text */
	bool is_process_wide;
	bool is_hosts;             /* SQL may not change it */
	bool is_for_one_statement; /* and not in the environment */
	/* An int64_t, a bool or an array of max + 1: the value, which for a session's setting is
	 * that of new sessions; and the value that DEFAULT restores, which is the environment's or
	 * else the default. */
	void *value, *base;
	size_t offset; /* of a session's, in struct session_settings */
	/* NULL: the form decides. False: the text is not allowed. */
	bool (*parse)(const char *text, struct setting_value *value);
	/* Makes the change happen before it is remembered; NULL: nothing to do. One change at a time. A QP_
	 * code: QP_INVALID of a value that is not allowed, another with a malloc'ed reason or, without
	 * memory, NULL. */
	int (*apply)(const struct setting_value *value, char **reason);
};

static inline bool setting_is_text(const struct setting *setting)
{
	return setting->form >= SETTING_IS_TEXT;
}

/* Settings of the process; more members of struct setting follow, as the name. */
#define SETTING_NUMBER(variable, unit_, from, to, default_, ...)                                             \
	static int64_t variable = (default_), base_##variable;                                               \
	SETTING_LIST(variable, SETTING_IN_PROCESS_(variable), SETTING_RANGE(unit_, from, to, default_),      \
	             __VA_ARGS__)

#define SETTING_SWITCH(variable, default_, ...)                                                              \
	static bool variable = (default_), base_##variable;                                                  \
	SETTING_LIST(variable, SETTING_IN_PROCESS_(variable), SETTING_ON_OFF(default_), __VA_ARGS__)

#define SETTING_TEXT(variable, form_, bytes, default_, ...)                                                  \
	static char variable[(bytes) + 1] = default_, base_##variable[(bytes) + 1];                          \
	SETTING_LIST(variable, SETTING_IN_PROCESS_(variable), SETTING_CHARS(form_, bytes, default_),         \
	             __VA_ARGS__)

#define SETTING_IN_PROCESS_(variable) .is_process_wide = true, .value = &(variable), .base = &base_##variable

/* The parts of a setting whose variable is defined elsewhere. */
#define SETTING_RANGE(unit_, from, to, default_)                                                             \
	.form = SETTING_IS_NUMBER, .unit = (unit_), .min = (from), .max = (to), .default_value = (default_)
#define SETTING_ON_OFF(default_) .form = SETTING_IS_SWITCH, .unit = "", .max = 1, .default_value = (default_)
#define SETTING_CHARS(form_, bytes, default_)                                                                \
	.form = (form_), .unit = "", .max = (bytes), .default_text = (default_)
#define SETTING_LIST(variable, ...)                                                                          \
	static const struct setting listed_##variable = { __VA_ARGS__ };                                     \
	static const struct setting *const entry_##variable                                                  \
		__attribute__((used, section("queryprof_settings"))) = &listed_##variable
