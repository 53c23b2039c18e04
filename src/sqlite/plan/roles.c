/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/roles.h"

#include <stddef.h>

#include "base/text.h"

static const struct {
	unsigned role;
	const char *opcodes;
} roles[] = {
	{ ROLE_USES | ROLE_MOVES | ROLE_JUMPS,
	  "Rewind Last SeekGE SeekGT SeekLE SeekLT SeekRowid Found NotFound VFilter SorterSort Sort" },
	{ ROLE_USES | ROLE_MOVES | ROLE_JUMPS | ROLE_CHECKS, "NotExists" },
	{ ROLE_USES | ROLE_JUMPS | ROLE_CHECKS, "NoConflict" },
	{ ROLE_USES | ROLE_MOVES, "Count" },
	{ ROLE_USES | ROLE_REPEATS | ROLE_JUMPS, "Next Prev VNext SorterNext" },
	{ ROLE_USES, "DeferredSeek Seek FinishSeek SeekHit IdxRowid Column Offset Rowid VColumn RowData "
	             "NullRow SorterData" },
	{ ROLE_JUMPS, "SeekScan Once Init" },
	{ ROLE_USES | ROLE_JUMPS, "IdxGE IdxGT IdxLE IdxLT SorterCompare" },
	{ ROLE_USES | ROLE_STORES, "SorterInsert IdxInsert Insert IdxDelete Delete" },
	{ ROLE_OPENS, "OpenAutoindex" },
	{ ROLE_GATHERS, "OpenEphemeral" },
	{ ROLE_WRITES, "OpenWrite" },
};

unsigned plan_role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (text_has_word(roles[i].opcodes, name))
			return roles[i].role;
	return ROLE_NONE;
}
