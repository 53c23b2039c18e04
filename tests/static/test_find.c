/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the machine's objects have a SQLite inside: what the search says, against a text
 * that every SQLite has in it. Folders and files are arguments.
 *
 * Where the search finds a table, the text must be there (no false find), its version must be
 * named in the file, and where neither is the search must be fast.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"
#include "watch/static/find.h"

static const char witness[] = "malformed database schema";
static struct {
	unsigned objects, tables, no_table, false_finds, missed;
	double slowest_ms;
	char slowest[512];
} seen;
static bool tells_all;

/* CPU time: others may be busy, too. */
static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool has_text(const struct load *load, const char *text, size_t size)
{
	for (int i = 0; i < load->info.dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &load->info.dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
		    memmem((void *)(load->info.dlpi_addr + segment->p_vaddr), segment->p_filesz, text, size))
			return true;
	}
	return false;
}

/* No preload and no extension comes into a program that is linked fully statically. */
static bool is_dynamic(const struct load *load)
{
	for (int i = 0; i < load->info.dlpi_phnum; i++)
		if (load->info.dlpi_phdr[i].p_type == PT_DYNAMIC)
			return true;
	return false;
}

static bool version_is_named(const struct load *load, uint32_t version)
{
	char text[24];
	int size = snprintf(text, sizeof text, "%u.%u.%u", version / 1000000, version / 1000 % 1000,
	                    version % 1000);

	return has_text(load, text, (size_t)size);
}

static const char *const names[] = { "nothing", "a SQLite without a table", "a table" };

static void see(const char *path)
{
	struct static_table tables[STATIC_TABLES_MAX];
	struct static_object object;
	struct load load;
	enum static_found found;
	double best = 1e9;
	size_t count;
	bool is_inside;

	if (!load_file(&load, path))
		return;
	if (!is_dynamic(&load)) {
		load_free(&load);
		return;
	}
	for (int i = 0; i < 3; i++) {
		double start = now_ms();

		found = static_find(&load.info, &object, tables, &count);
		best = now_ms() - start < best ? now_ms() - start : best;
	}
	is_inside = has_text(&load, witness, sizeof witness - 1);
	seen.objects++;
	seen.tables += found == STATIC_TABLE;
	seen.no_table += found == STATIC_NO_TABLE;
	if (found != STATIC_NOTHING || is_inside || tells_all)
		printf("%8.3f ms  %s: %s", best, path, names[found]);
	for (size_t i = 0; i < count; i++)
		printf(", SQLite %u with %zu routines", tables[i].version, tables[i].count);
	if (found != STATIC_NOTHING || is_inside || tells_all)
		puts(is_inside && found == STATIC_NOTHING ? " MISSED" : "");
	seen.missed += is_inside && found == STATIC_NOTHING;
	if (found != STATIC_NOTHING && !is_inside) {
		printf("FALSE: %s\n", path);
		seen.false_finds++;
	}
	for (size_t i = 0; i < count; i++)
		if (!version_is_named(&load, tables[i].version)) {
			printf("FALSE: %s: version %u is not named\n", path, tables[i].version);
			seen.false_finds++;
		}
	if (found == STATIC_NOTHING && best > seen.slowest_ms) {
		seen.slowest_ms = best;
		snprintf(seen.slowest, sizeof seen.slowest, "%s", path);
	}
	load_free(&load);
}

static int see_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)place;
	if (kind == FTW_F && S_ISREG(status->st_mode) && status->st_size > 1024)
		see(path);
	return 0;
}

/* `--with FILE` must have a table, and `--without FILE` nothing. */
int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		bool with = !strcmp(argv[i], "--with"), without = !strcmp(argv[i], "--without");
		unsigned before = seen.tables;

		if (!with && !without) {
			nftw(argv[i], see_file, 32, FTW_PHYS);
			continue;
		}
		tells_all = true;
		see(argv[++i]);
		if ((seen.tables > before) != with) {
			printf("WRONG: %s\n", argv[i]);
			failed = 1;
		}
		tells_all = false;
	}
	printf("%u objects, %u with a table, %u with a SQLite but none, %u false, %u with the text and no "
	       "SQLite "
	       "found; longest without one %.3f ms (%s)\n",
	       seen.objects, seen.tables, seen.no_table, seen.false_finds, seen.missed, seen.slowest_ms,
	       seen.slowest);
	return failed || seen.false_finds;
}
