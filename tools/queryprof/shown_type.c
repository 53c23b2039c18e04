/* SPDX-License-Identifier: Apache-2.0 */
#include "shown_type.h"

#include <string.h>

#include "base/sample_type.h"

static void set_unit(struct shown_type *type, const char *unit)
{
	snprintf(type->unit, sizeof(type->unit), "%s", unit);
	if (strcmp(unit, UNIT_NS) == 0)
		snprintf(type->title, sizeof(type->title), "%s time", type->clock ? type->clock : type->name);
	else
		snprintf(type->title, sizeof(type->title), "%s in %s", type->name, unit);
}

struct shown_type shown_type_of(const char *name)
{
	struct shown_type type = { .name = name ? name : SHOWN_TYPE_DEFAULT };
	const struct sample_type *known = sample_type_find(type.name);

	if (sample_type_is_timed(type.name))
		type.clock = strcmp(type.name, "Real") == 0 ? "wall" : type.name;
	if (known)
		set_unit(&type, known->unit);
	return type;
}

bool shown_type_read(struct shown_type *type, sqlite3 *db)
{
	sqlite3_stmt *row = NULL;

	if (!type->unit[0] && sqlite3_prepare_v2(db, "SELECT unit FROM sample_types WHERE name = ?", -1, &row,
	                                         NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, type->name, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			set_unit(type, (const char *)sqlite3_column_text(row, 0));
	}
	sqlite3_finalize(row);
	return type->unit[0];
}

int shown_type_refuse(const struct shown_type *type, const char *command)
{
	complain("%s: --type %s; expected CPU, Real or a type that the file has samples of", command,
	         type->name);
	return COMMAND_MISUSED;
}
