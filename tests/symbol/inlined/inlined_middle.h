/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is inlined from another file. */
enum { MIDDLE_LINE = __LINE__ + 3 };
ALWAYS void inlined_middle(inlined_visitor visit, enum inlined_place place)
{
	inlined_leaf(visit, place);
	inlined_sink++;
}
