/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A setting's values: which are allowed, how they are read from text, and the message for a wrong
 * one.
 */
#pragma once

#include "settings/setting.h"

#define SETTING_SHOWN 60 /* bytes of a bad value that a message repeats */

/* Reads `text` as a value of the setting; false when it is not allowed. */
bool setting_parse(const struct setting *setting, const char *text, struct setting_value *value);

/* The memory of the setting's value. Other threads read scalars without a lock, so they are stored
 * atomically. */
void setting_write(const struct setting *setting, void *storage, const struct setting_value *value);
void setting_read(const struct setting *setting, const void *storage, struct setting_value *value);

/* `name = value: reason`, and frees the reason; for QP_INVALID: the allowed values. Malloc'ed,
 * NULL if memory runs out. */
char *setting_error(const struct setting *setting, const char *value, int code, char *reason);
