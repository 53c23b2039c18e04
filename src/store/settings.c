/* SPDX-License-Identifier: Apache-2.0 */
#include "store/settings.h"

#include <stdlib.h>

#include "queryprof.h"
#include "settings/settings.h"
#include "store/store.h"

#define MIB (1024 * 1024ll)

static int configure(const struct setting_value *value, char **reason);

/* Absolute, or "". */
SETTING_TEXT(path, SETTING_IS_PATH, SETTING_PATH_BYTES, "", .name = "trace_log_path", .apply = configure,
             .description = "The trace file; empty: a private temporary file that is removed when the "
                            "process ends");
SETTING_NUMBER(max_bytes, "bytes", MIB, INT64_MAX, 1024 * MIB, .name = "trace_log_max_bytes",
               .zero = "no bound", .apply = configure,
               .description = "Size of the trace file above which its oldest samples are removed; 0: no "
                              "limit");
SETTING_NUMBER(interval_ms, "ms", 1, 3600000, 1000, .name = "trace_log_flush_interval_ms", .apply = configure,
               .description = "Longest time before a sample is written to the trace file");
SETTING_SWITCH(symbolize, false, .name = "trace_log_symbolize", .apply = configure,
               .description = "1: the flusher adds names and lines to the trace file after flushes");

static int configure(const struct setting_value *value, char **reason)
{
	const void *changed = value->setting->value;
	const struct store_config config = {
		.path = changed == path ? value->text : path,
		.max_bytes = changed == &max_bytes ? value->number : max_bytes,
		.flush_interval_ns = 1000000 * (changed == &interval_ms ? value->number : interval_ms),
		.does_chores = changed == &symbolize ? value->number : symbolize,
	};

	return store_is_started() ? store_configure(&config, reason) : QP_OK;
}

void store_settings(struct store_config *config)
{
	char *copy = malloc(sizeof(path));

	if (copy)
		settings_copy(copy, path, sizeof(path));
	*config = (struct store_config){
		.path = copy,
		.max_bytes = __atomic_load_n(&max_bytes, __ATOMIC_RELAXED),
		.flush_interval_ns = 1000000 * __atomic_load_n(&interval_ms, __ATOMIC_RELAXED),
		.does_chores = __atomic_load_n(&symbolize, __ATOMIC_RELAXED),
	};
}
