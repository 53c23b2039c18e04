/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sample_type.h"

static const struct sample_type types[TRACE_TYPES] = {
	[TRACE_CPU] = { "CPU", UNIT_NS, CLOCK_THREAD_CPUTIME_ID },
	[TRACE_REAL] = { "Real", UNIT_NS, CLOCK_MONOTONIC },
	[TRACE_OFF_CPU] = { "OffCPU", UNIT_NS, SAMPLE_TYPE_NO_CLOCK },
};

const struct sample_type *sample_type_at(size_t number)
{
	return number < TRACE_TYPES ? &types[number] : NULL;
}
