/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects of the machine that contain a SQLite, and compares the search with a text that every
 * SQLite contains. Folders and files are arguments.
 *
 * If the search finds a table, the text must be in the object (no false find), and the file must contain the
 * table's version. If an object has neither, the search must be fast. Times are CPU times: the shortest of
 * three searches, and the first one, with the memory that it made resident.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"
#include "sqlite/static/find.h"

static const char witness[] = "malformed database schema";
#define SLOWEST 5
static struct {
	unsigned objects, tables, no_table, false_finds, missed;
	struct slow {
		double ms;
		char path[512];
	} slowest[SLOWEST]; /* of the objects without a SQLite */
} seen;
static bool tells_all;

/* CPU time, because other programs may use the processors, too. */
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

/* A fully static program accepts neither a preload nor an extension. */
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
	int size = snprintf(text, sizeof(text), "%u.%u.%u", version / 1000000, version / 1000 % 1000,
	                    version % 1000);

	return has_text(load, text, (size_t)size);
}

/* The resident memory of this process. */
static double resident_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	double kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %lf", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static const char *const names[] = { "nothing", "a SQLite without a table",
	                             "a SQLite whose table is not found", "a table" };

/* The search of one object. The first search includes the page faults of a program that was just loaded. */
struct search {
	enum static_found found;
	struct static_table tables[STATIC_TABLES_MAX];
	size_t count;
	double first_ms, best_ms, more_kib;
};

static void search(const struct load *load, struct search *search)
{
	struct static_object object;
	double resident = resident_kib();

	for (int i = 0; i < 3; i++) {
		double start = now_ms(), taken;

		search->found = static_find(&load->info, &object, search->tables, &search->count);
		taken = now_ms() - start;
		if (i == 0) {
			search->first_ms = search->best_ms = taken;
			search->more_kib = resident_kib() - resident;
		}
		if (taken < search->best_ms)
			search->best_ms = taken;
	}
}

static void keep_slowest(const char *path, double ms)
{
	struct slow *slow = seen.slowest;

	for (size_t i = 0; i < SLOWEST; i++)
		if (ms > slow[i].ms) {
			memmove(slow + i + 1, slow + i, (SLOWEST - i - 1) * sizeof(*slow));
			slow[i].ms = ms;
			snprintf(slow[i].path, sizeof(slow[i].path), "%s", path);
			break;
		}
}

static void see(const char *path)
{
	struct search of = { 0 };
	struct load load;
	bool is_inside;

	if (!load_file(&load, path))
		return;
	if (!is_dynamic(&load)) {
		load_free(&load);
		return;
	}
	search(&load, &of);
	is_inside = has_text(&load, witness, sizeof(witness) - 1);
	seen.objects++;
	seen.tables += of.found == STATIC_TABLE;
	seen.no_table += of.found == STATIC_NO_TABLE || of.found == STATIC_UNKNOWN_TABLE;
	if (of.found != STATIC_NOTHING || is_inside || tells_all) {
		printf("%8.3f ms (first %.3f, %.0f KiB)  %s: %s", of.best_ms, of.first_ms, of.more_kib, path,
		       names[of.found]);
		for (size_t i = 0; i < of.count; i++)
			printf(", SQLite %u with %zu routines", of.tables[i].version, of.tables[i].count);
		puts(is_inside && of.found == STATIC_NOTHING ? " MISSED" : "");
	}
	seen.missed += is_inside && of.found == STATIC_NOTHING;
	if (of.found != STATIC_NOTHING && !is_inside) {
		printf("FALSE: %s\n", path);
		seen.false_finds++;
	}
	for (size_t i = 0; i < of.count; i++)
		if (!version_is_named(&load, of.tables[i].version)) {
			printf("FALSE: %s: version %u is not named\n", path, of.tables[i].version);
			seen.false_finds++;
		}
	if (of.found == STATIC_NOTHING)
		keep_slowest(path, of.best_ms);
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
	       "SQLite found; longest without one:\n",
	       seen.objects, seen.tables, seen.no_table, seen.false_finds, seen.missed);
	for (size_t i = 0; i < SLOWEST && seen.slowest[i].ms > 0; i++)
		printf("%8.3f ms  %s\n", seen.slowest[i].ms, seen.slowest[i].path);
	return failed || seen.false_finds;
}
