/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/ring_size.h"

#include "base/text.h"
#include "handler/ring.h"
#include "queryprof.h"
#include "settings/settings.h"

#define MIB (1024 * 1024ll)

static bool is_fixed; /* atomic */

static int refuse(const struct setting_value *value, char **reason);
SETTING_NUMBER(wanted, "bytes", RING_MIN_BYTES, RING_MAX_BYTES, 8 * MIB, .name = "trace_log_ring_bytes",
               .apply = refuse,
               .description = "Memory for samples that are not yet in the trace file; rounded up to a power "
                              "of two, and fixed when the library starts");

static int refuse(const struct setting_value *value, char **reason)
{
	if (!__atomic_load_n(&is_fixed, __ATOMIC_RELAXED) || value->number == wanted)
		return QP_OK;
	*reason = text_format(
		"fixed at %lld bytes since the library started; set QUERYPROF_TRACE_LOG_RING_BYTES "
		"in the environment, or qp_config.trace_log_ring_bytes for qp_init()",
		(long long)wanted);
	return QP_LOCKED;
}

size_t ring_size(void)
{
	settings_init();
	return (size_t)__atomic_load_n(&wanted, __ATOMIC_RELAXED);
}

void ring_size_fix(void)
{
	__atomic_store_n(&is_fixed, true, __ATOMIC_RELAXED);
}
