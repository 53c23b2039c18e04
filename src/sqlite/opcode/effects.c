/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/effects.h"

#define WORD 8
#define SLOTS (STEP_LOCATIONS - STEP_REGISTERS)

void step_write_slots(struct step *step, int64_t below, int64_t bytes)
{
	int64_t first = (below - bytes + WORD) / WORD, last = (below + WORD - 1) / WORD;

	if (last < 0 || first >= SLOTS)
		return;
	if (first < 0)
		first = 0;
	if (last >= SLOTS)
		last = SLOTS - 1;
	step->slot = (uint8_t)(STEP_REGISTERS + first);
	step->slots = (uint8_t)(last - first + 1);
}

uint8_t step_slot(int64_t below)
{
	if (below <= 0 || below % WORD || below / WORD >= SLOTS)
		return STEP_NO_LOCATION;
	return (uint8_t)(STEP_REGISTERS + below / WORD);
}
