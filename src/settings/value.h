/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One setting's values: what is allowed, how it is read from text, and what a message says of one that is no
 * good.
 */
#ifndef QUERYPROF_SETTINGS_VALUE_H
#define QUERYPROF_SETTINGS_VALUE_H

#include "settings/setting.h"

#define SETTING_SHOWN 60 /* bytes of a bad value that a message repeats */

/* Reads `text` as a value of the setting; false when it is not allowed. */
bool setting_parse(const struct setting *setting, const char *text, struct setting_value *value);

/* Where a value of the setting stands. Scalars are read by other threads without a lock, hence stored
 * atomically. */
void setting_write(const struct setting *setting, void *storage, const struct setting_value *value);
void setting_read(const struct setting *setting, const void *storage, struct setting_value *value);

/* `name = value: reason`, which frees the reason; of QP_INVALID: what is allowed. Malloc'ed, NULL without
 * memory. */
char *setting_error(const struct setting *setting, const char *value, int code, char *reason);

#endif
