/*
 * What the open trace file itself says of an address (tables frames and names), for
 * all that shows functions and lines.
 */
#include "command.h"

#include "export/strings.h"
#include "trace/process_space.h"
#include "symbol/symbol.h"

static const char frames_sql[] = "SELECT called.name, source.name, line, inlined FROM frames"
				 " LEFT JOIN names AS called ON called.id = symbol"
				 " LEFT JOIN names AS source ON source.id = file"
				 " WHERE address = ?1 ORDER BY level";

static sqlite3_stmt *frames_at;
static struct strings strings;

static const char *keep_column(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? strings_keep(&strings, text) : NULL;
}

static size_t read_frames(uint64_t address, struct symbol_frame *frames, size_t room)
{
	size_t count = 0;

	sqlite3_bind_int64(frames_at, 1, (int64_t)address);
	while (count < room && sqlite3_step(frames_at) == SQLITE_ROW) {
		int line = sqlite3_column_int(frames_at, 2);
		const char *file = line > 0 ? keep_column(frames_at, 1) : NULL;

		frames[count++] = (struct symbol_frame){
			.function = keep_column(frames_at, 0),
			.file = file,
			.line = file ? line : 0,
			.is_inlined = sqlite3_column_int(frames_at, 3),
		};
	}
	sqlite3_reset(frames_at);
	return count;
}

int trace_names_open(sqlite3 *db)
{
	int code = sqlite3_prepare_v2(db, frames_sql, -1, &frames_at, NULL);

	if (!code)
		address_use_reader(read_frames);
	return code;
}

void trace_names_close(void)
{
	address_use_reader(NULL);
	sqlite3_finalize(frames_at);
	frames_at = NULL;
	strings_free(&strings);
}
