/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come from these sources, the best that is there first:
 *
 *   symbol table     .symtab of the object itself: all its functions
 *   debug file       .symtab of the separate debug file, which distributions package
 *   debuginfod       the same file, fetched before (debuginfod.h)
 *   .gnu_debugdata   the local functions, packed into the stripped object (Fedora)
 *   archive          static functions proven by the static library of the same source
 *   dynamic symbols  .dynsym: the exported functions
 *   stubs            name@plt, from the slots that the dynamic linker fills
 *   start code       main and _start, from what the C run-time's first code does
 *
 * Generated code lies in no object: its names come from the map that its compiler writes,
 * see perf_map.h.
 */
#include "symbol/sources.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/debug.h"
#include "symbol/archive/archive.h"
#include "symbol/table_builder.h"
#include "symbol/debug_file.h"
#include "symbol/debuginfod.h"
#include "symbol/elf_image.h"
#include "symbol/entry.h"
#include "symbol/plt.h"

#define VDSO_PATH "[vdso]"

/* One object while its sources are read. */
struct search {
	const struct symbol_object *object;
	const char *folders;
	const struct elf_image *image; /* NULL: the object's file is gone */
	struct why *why;
};

/* --- files ------------------------------------------------------------------------ */

static bool open_file(const struct symbol_object *object, struct elf_image *image)
{
	if (strcmp(object->path, VDSO_PATH) != 0)
		return elf_image_open(image, object->path);
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	return vdso && elf_image_open_memory(image, vdso);
}

/* Whether the image is the object that was mapped, and not another that lies at the path by now. */
static bool is_object(const struct symbol_object *object, const struct elf_image *image)
{
	if (image->header.e_type == ET_REL)
		return false;
	if (!object->build_id[0])
		return object->file_size != 0 && object->file_size == image->size &&
		       object->mtime_ns == image->mtime_ns;
	char build_id[BUILD_ID_TEXT];
	elf_image_build_id(image, build_id);
	return strcmp(build_id, object->build_id) == 0;
}

static bool open_object(const struct symbol_object *object, struct elf_image *image, struct why *why)
{
	if (!libdw_load()) {
		why_add(why, "elfutils' libdw.so.1 is not installed or cannot be loaded");
		return false;
	}
	if (!open_file(object, image)) {
		why_add(why, access(object->path, F_OK) == 0 ? "the file is not a readable ELF object"
		                                             : "the file no longer exists");
		return false;
	}
	if (is_object(object, image))
		return true;
	elf_image_close(image);
	why_add(why, "the file at the path is now another one");
	return false;
}

/* The files that may have more than the object: each opens the one that has the section
 * `needed`. */
typedef bool (*open_debug)(const struct search *search, const char *needed, struct elf_image *debug);

static bool open_debug_file(const struct search *search, const char *needed, struct elf_image *debug)
{
	if (debug_file_open(debug, search->image, search->object->path, search->object->build_id,
	                    search->folders, needed))
		return true;
	why_add(search->why, "no debug file in %s", search->folders[0] ? search->folders : "no folder");
	return false;
}

static bool open_fetched(const struct search *search, const char *needed, struct elf_image *debug)
{
	const char *path = debuginfod_path(search->object->build_id);
	if (path && debug_file_open_at(debug, path, search->object->build_id, needed))
		return true;
	if (debuginfod_is_wanted())
		why_add(search->why, "none from DEBUGINFOD_URLS");
	return false;
}

static bool open_embedded(const struct search *search, const char *needed, struct elf_image *debug)
{
	(void)needed;
	if (!search->image || !elf_image_section(search->image, ".gnu_debugdata"))
		return false;
	if (debug_file_open_embedded(debug, search->image))
		return true;
	why_add(search->why, ".gnu_debugdata cannot be unpacked");
	return false;
}

/* --- names ------------------------------------------------------------------------ */

static bool collect_own(const struct search *search, struct symbol_table_builder *builder)
{
	if (!elf_image_section_of_type(search->image, SHT_SYMTAB))
		why_add(search->why, "stripped");
	return symbol_table_builder_add_section(builder, search->image, SHT_SYMTAB);
}

static bool collect_archived(const struct search *search, struct symbol_table_builder *builder)
{
	return archive_collect(search->image, search->object->path, builder, search->why);
}

static bool collect_dynamic(const struct search *search, struct symbol_table_builder *builder)
{
	return symbol_table_builder_add_section(builder, search->image, SHT_DYNSYM);
}

static bool collect_stubs(const struct search *search, struct symbol_table_builder *builder)
{
	return plt_collect(search->image, builder);
}

static bool collect_start(const struct search *search, struct symbol_table_builder *builder)
{
	return entry_collect(search->image, builder);
}

static const struct name_source {
	const char *name;
	enum name_stage stage;
	bool knows_locals;  /* it has all functions, or all that the dynamic symbols lack */
	bool is_substitute; /* used only while none of those that know the locals had any */
	/* The file whose symbol table is read; NULL: the object's own file has them, where it is
	 * there, and `collect` finds them. False: no memory. */
	open_debug open;
	bool (*collect)(const struct search *search, struct symbol_table_builder *builder);
} sources[] = {
	{ "symbol table", NAMES_AT_ONCE, true, true, NULL, collect_own },
	{ "debug file", NAMES_AT_ONCE, true, true, open_debug_file, NULL },
	{ "debuginfod", NAMES_AT_ONCE, true, true, open_fetched, NULL },
	{ ".gnu_debugdata", NAMES_AT_ONCE, true, true, open_embedded, NULL },
	{ "archive", NAMES_LATE, false, true, NULL, collect_archived },
	{ "dynamic symbols", NAMES_AT_ONCE, false, false, NULL, collect_dynamic },
	{ "stubs", NAMES_AT_ONCE, false, false, NULL, collect_stubs },
	{ "start code", NAMES_AT_ONCE, false, true, NULL, collect_start },
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

static bool collect_from(const struct search *search, const struct name_source *source,
                         struct symbol_table_builder *builder)
{
	struct elf_image debug;
	if (!source->open)
		return !search->image || source->collect(search, builder);
	if (!source->open(search, ".symtab", &debug))
		return true;
	bool good = symbol_table_builder_add_section(builder, &debug, SHT_SYMTAB);
	elf_image_close(&debug);
	return good;
}

static bool collect(const struct search *search, enum name_stage stage, struct names_found *found,
                    struct symbol_table_builder *builder)
{
	for (size_t i = 0; i < SOURCES; i++) {
		const struct name_source *source = &sources[i];
		size_t before = builder->candidates.count;
		if (source->stage != stage || (source->is_substitute && found->has_locals))
			continue;
		if (!collect_from(search, source, builder))
			return false;
		if (builder->candidates.count > before) {
			found->sources |= 1u << i;
			found->has_locals |= source->knows_locals;
		}
	}
	return true;
}

struct symbol_table *sources_read_names(const struct symbol_object *object, const char *folders,
                                        enum name_stage stage, struct names_found *found)
{
	struct symbol_table_builder builder = { 0 };
	struct elf_image image;
	struct why no_file = { "" };
	bool has_image = open_object(object, &image, &no_file);
	const struct search search = { object, folders, has_image ? &image : NULL, &found->why_not };
	if (stage == NAMES_AT_ONCE && !has_image)
		why_add(&found->why_not, "%s", no_file.text);
	bool good = collect(&search, stage, found, &builder);
	const char *best = sources_best(found), *why = found->has_locals ? "" : found->why_not.text;
	debug_log(DEBUG_SYMBOLS, "%s (%s): names from %s%s%s", object->path, object->build_id,
	          best ? best : "nowhere", why[0] ? "; " : "", why);
	if (has_image)
		elf_image_close(&image);
	if (good && builder.candidates.count)
		return symbol_table_builder_finish(&builder);
	symbol_table_builder_free(&builder);
	return NULL;
}

const char *sources_best(const struct names_found *found)
{
	return found->sources ? sources[__builtin_ctz(found->sources)].name : NULL;
}

/* --- lines ------------------------------------------------------------------------ */

static bool open_own(const struct search *search, const char *needed, struct elf_image *debug)
{
	bool has = search->image && elf_image_section(search->image, needed);
	if (search->image && !has)
		why_add(search->why, "no debug information");
	struct why ignored = { "" };
	return has && open_object(search->object, debug, &ignored);
}

static const struct line_source {
	const char *name;
	open_debug open;
} line_sources[] = {
	{ "the object", open_own },
	{ "debug file", open_debug_file },
	{ "debuginfod", open_fetched },
};
#define LINE_SOURCES (sizeof(line_sources) / sizeof(line_sources[0]))

/* The first source that has lines: opens them when `lines` is not NULL. */
static const char *find_lines(const struct symbol_object *object, const char *folders, struct why *why,
                              struct lines **lines)
{
	struct elf_image image, debug;
	bool has_image = open_object(object, &image, why);
	const struct search search = { object, folders, has_image ? &image : NULL, why };
	const char *found = NULL;
	for (size_t i = 0; !found && i < LINE_SOURCES; i++) {
		if (!line_sources[i].open(&search, ".debug_info", &debug))
			continue;
		if (lines)
			*lines = lines_open(&debug, folders);
		if (!lines || *lines)
			found = line_sources[i].name;
		elf_image_close(&debug);
	}
	if (has_image)
		elf_image_close(&image);
	return found;
}

struct lines *sources_read_lines(const struct symbol_object *object, const char *folders)
{
	struct lines *lines = NULL;
	struct why why = { "" };
	const char *from = find_lines(object, folders, &why, &lines);
	debug_log(DEBUG_SYMBOLS, "%s (%s): lines from %s%s%s", object->path, object->build_id,
	          from ? from : "nowhere", from ? "" : "; ", from ? "" : why.text);
	return lines;
}

const char *sources_lines_from(const struct symbol_object *object, const char *folders, struct why *why)
{
	return find_lines(object, folders, why, NULL);
}
