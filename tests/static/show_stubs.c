/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints how each file's SQLite functions would be patched: their first bytes, and the stub or the reason
 * against a stub. It patches nothing.
 */
#include <sqlite3ext.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "load.h"
#include "sqlite/static/find.h"
#include "sqlite/static/stub.h"

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define FUNCTION(name)                                                                                       \
	{                                                                                                    \
#name, offsetof(struct sqlite3_api_routines, name)                                           \
	}
	FUNCTION(step),           FUNCTION(reset),
	FUNCTION(finalize),       FUNCTION(exec),
	FUNCTION(prepare),        FUNCTION(prepare_v2),
	FUNCTION(prepare_v3),     FUNCTION(prepare16),
	FUNCTION(prepare16_v2),   FUNCTION(prepare16_v3),
	FUNCTION(close),          FUNCTION(close_v2),
	FUNCTION(backup_init),    FUNCTION(backup_step),
	FUNCTION(backup_finish),  FUNCTION(blob_open),
	FUNCTION(blob_reopen),    FUNCTION(blob_read),
	FUNCTION(blob_write),     FUNCTION(blob_close),
	FUNCTION(wal_checkpoint), FUNCTION(wal_checkpoint_v2),
	FUNCTION(serialize),      FUNCTION(deserialize),
	FUNCTION(open),           FUNCTION(open_v2),
	FUNCTION(open16),
#undef FUNCTION
};

static int show(const struct static_object *object, const struct static_table *table)
{
	int refused = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		uintptr_t function = 0;
		const char *why = "there is none";
		struct stub stub = { 0 };

		if (functions[i].offset < table->count * sizeof(function))
			memcpy(&function, (const char *)table->routines + functions[i].offset,
			       sizeof(function));
		if (function)
			why = stub_make(&stub, &object->code, function, object->image.start - 4096, NULL);
		printf("  %-18s", functions[i].name);
		for (int byte = 0; function && byte < 12; byte++)
			printf(" %02x", ((const unsigned char *)function)[byte]);
		printf("  %s", why ? why : "");
		if (!why)
			printf("%zu bytes, stub of %zu, %zu rows", stub.back - stub.at, stub.size,
			       stub.rows_count);
		puts("");
		refused += why != NULL;
	}
	return refused;
}

int main(int argc, char **argv)
{
	int refused = 0;

	for (int i = 1; i < argc; i++) {
		struct static_table tables[STATIC_TABLES_MAX];
		struct static_object object;
		struct load load;
		size_t count = 0;

		if (load_file(&load, argv[i]))
			static_find(&load.info, &object, tables, &count);
		for (size_t t = 0; t < count; t++) {
			printf("%s: SQLite %u\n", argv[i], tables[t].version);
			refused += show(&object, &tables[t]);
			printf("  thin: prepare %#lx, close %#lx\n",
			       stub_only_call(
				       &object.code,
				       tables[t].routines[offsetof(struct sqlite3_api_routines, prepare_v2) /
			                                  8],
				       true) -
			               load.info.dlpi_addr,
			       stub_only_call(
				       &object.code,
				       tables[t].routines[offsetof(struct sqlite3_api_routines, close) / 8],
				       false) -
			               load.info.dlpi_addr);
		}
		if (count)
			load_free(&load);
	}
	printf("%d refused\n", refused);
	return 0;
}
