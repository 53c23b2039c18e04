/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sample_type.h"

static const struct sample_type types[SAMPLE_TYPES] = {
	[SAMPLE_CPU] = { "CPU", UNIT_NS, CLOCK_THREAD_CPUTIME_ID },
	[SAMPLE_REAL] = { "Real", UNIT_NS, CLOCK_MONOTONIC },
	[SAMPLE_OFF_CPU] = { "OffCPU", UNIT_NS, SAMPLE_TYPE_NO_CLOCK },
	[SAMPLE_PROGRAM_CPU] = { "ProgramCPU", UNIT_NS, CLOCK_THREAD_CPUTIME_ID },
	[SAMPLE_PROGRAM_OFF_CPU] = { "ProgramOffCPU", UNIT_NS, SAMPLE_TYPE_NO_CLOCK },
	[SAMPLE_MEMORY] = { "MemorySample", UNIT_BYTES, SAMPLE_TYPE_NO_CLOCK },
	[SAMPLE_MEMORY_FREE] = { "MemoryFree", UNIT_BYTES, SAMPLE_TYPE_NO_CLOCK },
};

const struct sample_type *sample_type_at(size_t number)
{
	return number < SAMPLE_TYPES ? &types[number] : NULL;
}
