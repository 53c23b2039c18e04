/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of settings for every way to set one: PRAGMA (bare and `system.`), UPDATE system.settings,
 * set_setting(), qp_set() and the environment.
 *
 * `of` is a session's settings. NULL: the process-wide ones, and the values with which new sessions
 * start.
 */
#pragma once

#include <stddef.h>

#include "settings/setting.h"

struct session_settings;

/* Reads the environment (base/environment.h) into the defaults, once. A bad value
 * leaves the default and is reported in system.metrics (settings_environment_error). */
void settings_init(void);

/* Reads it again: variables that are not set have their defaults. One thread at a time. */
void settings_read_environment(void);
const char *settings_environment_error(void); /* NULL: none */

/* Settings of another library that calls these functions: its list, of which those count whose names are new
 * here. They are read from the environment, too. */
void settings_join(const struct setting *const *first, const struct setting *const *end);

/* The environment's variable for a setting, in `variable`, which has room for `size` bytes. */
void settings_variable(const char *name, char *variable, size_t size);

enum setting_source { SETTING_FROM_SQL, SETTING_FROM_C };

/* `value` is text as the user gave it. "DEFAULT" (any case) restores the value with which new
 * sessions start or, if the setting does not belong to sessions, that of the environment or else
 * of the declaration. Returns a QP_ code; on error, `*error` (free() it) names the setting, the
 * value and what is allowed, and nothing has changed. */
int settings_set(struct session_settings *of, const char *name, const char *value, enum setting_source source,
                 char **error);

/* The error of the newest change that was refused, malloc'ed; NULL: none was. Where SQL can
 * return no error, a person finds it in system.metrics. */
char *settings_newest_error(void);

/* The value as text, malloc'ed; NULL: no such setting. */
char *settings_get(const struct session_settings *of, const char *name);

/* The value that DEFAULT would set, as text, malloc'ed. */
char *settings_get_default(const struct session_settings *of, const char *name);

/* For the room of the settings: copies values while none of them changes. */
void settings_copy(void *to, const void *values, size_t size);

void settings_lock(void);

/* The setting with this name (any case), NULL: none. */
const struct setting *settings_find(const char *name);

/* All in the order of their names: the first after `before`, NULL: the first of all. NULL: there
 * are no more. */
const struct setting *settings_next(const struct setting *before);
