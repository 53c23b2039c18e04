/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_store.h"

#include <stdio.h>
#include <string.h>

#include "queryprof.h"
#include "settings/setting.h"

const char *fake_store_refusal;
int fake_store_calls;
struct store_config fake_store_config;
char fake_store_path[4096];

int store_configure(const struct store_config *config, char **error)
{
	fake_store_calls++;
	if (fake_store_refusal) {
		*error = strdup(fake_store_refusal);
		return QP_STORE;
	}
	fake_store_config = *config;
	snprintf(fake_store_path, sizeof(fake_store_path), "%s", config->path);
	return QP_OK;
}

bool fake_store_is_started;

bool store_is_started(void)
{
	return fake_store_is_started;
}

char fake_debug_path[4096];

static int set_debug_path(const struct setting_value *value, char **reason)
{
	(void)reason;
	snprintf(fake_debug_path, sizeof(fake_debug_path), "%s", value->text);
	return QP_OK;
}

SETTING_TEXT(debug_path, SETTING_IS_PATHS, SETTING_PATH_BYTES, "/usr/lib/debug", .name = "debug_path",
             .apply = set_debug_path, .description = "Of the room symbol.");
