/* SPDX-License-Identifier: Apache-2.0 */
/* The second compilation unit. */
#include "inlined.h"

const int inlined_far_line = __LINE__ + 3;
void inlined_far(inlined_visitor visit)
{
	visit(INLINED_FAR);
	inlined_sink++;
}
