/* SPDX-License-Identifier: Apache-2.0 */
#include "store/settings.h"

#include <stdlib.h>

#include "base/text.h"
#include "handler/ring.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "store/store.h"

#define MIB (1024 * 1024ll)

static bool ring_is_made; /* atomic */

static int configure(const struct setting_value *value, char **reason);
static int refuse_for_ring(const struct setting_value *value, char **reason);

/* Absolute, or "". */
SETTING_TEXT(path, SETTING_IS_PATH, SETTING_PATH_BYTES, "", .name = "trace_log_path", .apply = configure,
             .description = "The trace file; empty: a private temporary file that goes with the process");
SETTING_NUMBER(max_bytes, "bytes", MIB, INT64_MAX, 1024 * MIB, .name = "trace_log_max_bytes",
               .zero = "no bound", .apply = configure,
               .description = "Size of the trace file at which its oldest samples go; 0: no bound");
SETTING_NUMBER(interval_ms, "ms", 1, 3600000, 1000, .name = "trace_log_flush_interval_ms", .apply = configure,
               .description = "Longest time that a sample waits to be written to the trace file");
SETTING_SWITCH(symbolize, false, .name = "trace_log_symbolize", .apply = configure,
               .description = "1: the flusher puts names and lines into the trace file after flushes");
SETTING_NUMBER(ring_bytes_wanted, "bytes", RING_MIN_BYTES, RING_MAX_BYTES, 8 * MIB,
               .name = "trace_log_ring_bytes", .apply = refuse_for_ring,
               .description = "Memory for samples on their way to the trace file; rounded up to a power "
                              "of two, fixed once the library has started");

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

static int refuse_for_ring(const struct setting_value *value, char **reason)
{
	if (!__atomic_load_n(&ring_is_made, __ATOMIC_RELAXED) || value->number == ring_bytes_wanted)
		return QP_OK;
	*reason = text_format(
		"fixed at %lld bytes since the library started; set QUERYPROF_TRACE_LOG_RING_BYTES "
		"in the environment, or qp_config.trace_log_ring_bytes for qp_init()",
		(long long)ring_bytes_wanted);
	return QP_LOCKED;
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

size_t store_ring_bytes(void)
{
	settings_init();
	return (size_t)__atomic_load_n(&ring_bytes_wanted, __ATOMIC_RELAXED);
}

void store_ring_is_made(void)
{
	__atomic_store_n(&ring_is_made, true, __ATOMIC_RELAXED);
}
