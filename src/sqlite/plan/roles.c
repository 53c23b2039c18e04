/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/roles.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned role;
} roles[] = {
	{ "Rewind", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "Last", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SeekGE", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SeekGT", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SeekLE", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SeekLT", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SeekRowid", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "NotExists", ROLE_USES | ROLE_MOVES | ROLE_JUMPS | ROLE_CHECKS },
	{ "Found", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "NotFound", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "NoConflict", ROLE_USES | ROLE_JUMPS | ROLE_CHECKS },
	{ "Count", ROLE_USES | ROLE_MOVES },
	{ "VFilter", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "SorterSort", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "Sort", ROLE_USES | ROLE_MOVES | ROLE_JUMPS },
	{ "Next", ROLE_USES | ROLE_REPEATS | ROLE_JUMPS },
	{ "Prev", ROLE_USES | ROLE_REPEATS | ROLE_JUMPS },
	{ "VNext", ROLE_USES | ROLE_REPEATS | ROLE_JUMPS },
	{ "SorterNext", ROLE_USES | ROLE_REPEATS | ROLE_JUMPS },
	{ "DeferredSeek", ROLE_USES },
	{ "Seek", ROLE_USES },
	{ "FinishSeek", ROLE_USES },
	{ "SeekScan", ROLE_JUMPS },
	{ "SeekHit", ROLE_USES },
	{ "IdxGE", ROLE_USES | ROLE_JUMPS },
	{ "IdxGT", ROLE_USES | ROLE_JUMPS },
	{ "IdxLE", ROLE_USES | ROLE_JUMPS },
	{ "IdxLT", ROLE_USES | ROLE_JUMPS },
	{ "IdxRowid", ROLE_USES },
	{ "Column", ROLE_USES },
	{ "Offset", ROLE_USES },
	{ "Rowid", ROLE_USES },
	{ "VColumn", ROLE_USES },
	{ "RowData", ROLE_USES },
	{ "NullRow", ROLE_USES },
	{ "SorterData", ROLE_USES },
	{ "SorterCompare", ROLE_USES | ROLE_JUMPS },
	{ "SorterInsert", ROLE_USES | ROLE_STORES },
	{ "IdxInsert", ROLE_USES | ROLE_STORES },
	{ "Insert", ROLE_USES | ROLE_STORES },
	{ "IdxDelete", ROLE_USES | ROLE_STORES },
	{ "Delete", ROLE_USES | ROLE_STORES },
	{ "OpenAutoindex", ROLE_OPENS },
	{ "OpenEphemeral", ROLE_GATHERS },
	{ "OpenWrite", ROLE_WRITES },
	{ "Once", ROLE_JUMPS },
	{ "Init", ROLE_JUMPS },
};

unsigned plan_role_of(const char *name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (!strcmp(roles[i].name, name))
			return roles[i].role;
	return ROLE_NONE;
}
