/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions whose inlined calls are known. Code follows each call, so that none becomes a jump.
 */
#include "inlined.h"

#include <stddef.h>

volatile int inlined_sink;

enum { LEAF_LINE = __LINE__ + 3 };
ALWAYS void inlined_leaf(inlined_visitor visit, enum inlined_place place)
{
	visit(place);
	inlined_sink++;
}

#include "inlined_middle.h"

enum { LARGE_LINE = __LINE__ + 5 };
void __attribute__((noinline)) inlined_large(inlined_visitor visit);
void __attribute__((noinline)) inlined_large(inlined_visitor visit)
{
	if (inlined_sink < 1000) {
		inlined_middle(visit, INLINED_TWICE); /* LARGE_LINE */
		inlined_leaf(visit, INLINED_ONCE);
	}
	visit(INLINED_NOT);
	inlined_sink++;
	inlined_far(visit);
	inlined_sink++;
}

void inlined_run(inlined_visitor visit)
{
	inlined_large(visit);
	inlined_sink++;
	inlined_run_method(visit);
	inlined_sink++;
}

const struct inlined_expected *inlined_expect(enum inlined_place place, int is_linked_as_one)
{
	static struct inlined_expected places[INLINED_PLACES][4] = {
		[INLINED_TWICE] = {
			{ "inlined_leaf", "inlined_one.c", LEAF_LINE },
			{ "inlined_middle", "inlined_middle.h", MIDDLE_LINE },
			{ "inlined_large", "inlined_one.c", LARGE_LINE },
		},
		[INLINED_ONCE] = {
			{ "inlined_leaf", "inlined_one.c", LEAF_LINE },
			{ "inlined_large", "inlined_one.c", LARGE_LINE + 1 },
		},
		[INLINED_NOT] = { { "inlined_large", "inlined_one.c", LARGE_LINE + 3 } },
		[INLINED_FAR] = {
			{ "inlined_far", "inlined_two.c", 0 },
			{ NULL, NULL, 0 },
		},
	};
	if (place == INLINED_METHOD)
		return inlined_method;
	places[INLINED_FAR][0].line = inlined_far_line;
	if (is_linked_as_one)
		places[INLINED_FAR][1] =
			(struct inlined_expected){ "inlined_large", "inlined_one.c", LARGE_LINE + 5 };
	return places[place];
}
