/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing settings of a session.
 */
#pragma once

#include "sqlite/session/session.h"

/* settings_set() of the session or, NULL, of what new ones start with; statements are then
 * followed as the settings in force require. */
int session_set(struct session *session, const char *name, const char *value, enum setting_source source,
                char **error);
