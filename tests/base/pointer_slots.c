/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of pointers: an added pointer is found until it is removed, whatever happens to the other pointers.
 */
#include "base/pointer_slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#define SLOTS 64u
#define MOST (SLOTS / 4 * 3)
#define POINTERS 200

static const void *keys[SLOTS];
static uint32_t used;

static bool add(const void *key)
{
	uint32_t slot = pointer_slot_choose(keys, SLOTS, used, key);

	if (slot != POINTER_SLOT_NONE)
		pointer_slot_publish(keys, &used, slot, key);
	return slot != POINTER_SLOT_NONE;
}

static void removed_keys_leave_room(void **state)
{
	static char pointers[POINTERS];
	bool is_in[POINTERS] = { false };
	uint32_t count = 0;

	(void)state;
	srandom(7);
	for (int i = 0; i < 100000; i++) {
		const long which = random() % POINTERS;
		const char *key = &pointers[which];
		uint32_t slot = pointer_slot_find(keys, SLOTS, key);

		assert_int_equal(slot != POINTER_SLOT_NONE, is_in[which]);
		if (is_in[which])
			pointer_slot_remove(keys, SLOTS, &used, slot);
		else if (!add(key))
			continue;
		is_in[which] = !is_in[which];
		count += is_in[which] ? 1 : UINT32_MAX;
		assert_true(count <= used && used <= MOST); /* so a search ends */
	}
	for (int i = 0; i < POINTERS; i++)
		if (is_in[i])
			pointer_slot_remove(keys, SLOTS, &used, pointer_slot_find(keys, SLOTS, &pointers[i]));
	assert_int_equal(used, 0);
	for (uint32_t i = 0; i < MOST; i++)
		assert_true(add(&pointers[i]));
	assert_false(add(&pointers[MOST]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_keys_leave_room),
	};

	return cmocka_run_group_tests_name("pointer_slots", tests, NULL, NULL);
}
