/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/shown_type.h"

#include <string.h>
#include <strings.h>

#include "cmd/file/selected_samples.h"
#include "store/file/database.h"
#include "wire/sample_type.h"

static void set_unit(struct shown_type *type, const char *unit)
{
	snprintf(type->unit, sizeof(type->unit), "%s", unit);
	if (strcmp(unit, UNIT_NS) == 0)
		snprintf(type->title, sizeof(type->title), "%s time", type->clock ? type->clock : type->name);
	else
		snprintf(type->title, sizeof(type->title), "%s in %s", type->name, unit);
}

/* The type in this build; NULL: none. */
static const struct sample_type *find_known(const char *name)
{
	const struct sample_type *known;

	for (size_t i = 0; (known = sample_type_at(i)); i++)
		if (strcasecmp(name, known->name) == 0)
			return known;
	return NULL;
}

/* The types of memory, which --type names as people do. False: it is none. */
static bool find_memory(struct shown_type *type, const char *name)
{
	static const struct {
		const char *name, *type, *title;
	} types[] = {
		{ "memory", SELECTED_MEMORY, "allocated memory" },
		{ "live", SELECTED_LIVE, "live memory" },
	};

	for (size_t i = 0; name && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(name, types[i].name) != 0 && strcasecmp(name, types[i].type) != 0)
			continue;
		snprintf(type->name, sizeof(type->name), "%s", types[i].type);
		snprintf(type->unit, sizeof(type->unit), "%s", UNIT_BYTES);
		snprintf(type->title, sizeof(type->title), "%s", types[i].title);
		type->is_memory = true;
	}
	return type->is_memory;
}

struct shown_type shown_type_of(const char *name)
{
	struct shown_type type = { .clock = NULL };
	if (find_memory(&type, name))
		return type;
	type.is_wall = name && strcasecmp(name, SHOWN_TYPE_WALL) == 0;
	const struct sample_type *known =
		type.is_wall ? sample_type_at(SAMPLE_REAL) : find_known(name ? name : SHOWN_TYPE_DEFAULT);

	snprintf(type.name, sizeof(type.name), "%s",
	         type.is_wall ? SHOWN_TYPE_WALL
	         : known      ? known->name
	                      : name);
	if (!known)
		return type;
	if (known->clock != SAMPLE_TYPE_NO_CLOCK)
		type.clock = known == sample_type_at(SAMPLE_REAL) ? "wall" : known->name;
	type.is_timed = type.clock;
	set_unit(&type, known->unit);
	return type;
}

/* Samples of waits are the part of wall time that CPU samples do not cover. */
static void read_wall(struct shown_type *type, sqlite3 *db)
{
	static const char have_waits[] =
		"SELECT EXISTS (SELECT 1 FROM temp.wall_types WHERE trace_type = 'OffCPU')";

	type->is_timed = !database_number(db, have_waits, 0);
	snprintf(type->name, sizeof(type->name), "%s",
	         type->is_timed ? sample_type_at(SAMPLE_REAL)->name : SHOWN_TYPE_WALL);
}

bool shown_type_read(struct shown_type *type, sqlite3 *db)
{
	/* Only a damaged file has no unit. */
	static const char find[] =
		"SELECT name, coalesce(unit, 'unknown') FROM sample_types WHERE name = ? COLLATE NOCASE "
		"ORDER BY name <> ?1 LIMIT 1";
	sqlite3_stmt *row = NULL;

	if (type->is_wall)
		read_wall(type, db);
	if (!type->unit[0] && sqlite3_prepare_v2(db, find, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, type->name, -1, SQLITE_TRANSIENT);
		if (sqlite3_step(row) == SQLITE_ROW) {
			snprintf(type->name, sizeof(type->name), "%s",
			         (const char *)sqlite3_column_text(row, 0));
			set_unit(type, (const char *)sqlite3_column_text(row, 1));
		}
	}
	sqlite3_finalize(row);
	return type->unit[0];
}

void shown_type_none(const struct shown_type *type, char text[SHOWN_TYPE_NONE])
{
	snprintf(text, SHOWN_TYPE_NONE, type->clock ? "no samples on the %s clock" : "no samples of type %s",
	         type->clock ? type->clock : type->name);
}

int shown_type_refuse(const struct shown_type *type, const char *command)
{
	complain("%s: --type %s; expected cpu, wall, memory, live or another type of sample in the file",
	         command, type->name);
	return COMMAND_MISUSED;
}
