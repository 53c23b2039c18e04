/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's versions of libc's functions do the same as libc's. CMakeLists.txt gives them other names
 * here.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/seed.h"

char *ours_realpath(const char *path, char *resolved);
struct tm *ours_gmtime_r(const time_t *time, struct tm *parts);
void ours_qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));
DIR *ours_opendir(const char *path);
struct dirent *ours_readdir(DIR *folder);
int ours_closedir(DIR *folder);
FILE *ours_open_memstream(char **text, size_t *size);
FILE *ours_fopen(const char *path, const char *how);
ssize_t ours_getdelim(char **line, size_t *room, int delimiter, FILE *file);
int ours_fprintf(FILE *file, const char *format, ...);
int ours_fputs(const char *text, FILE *file);
int ours_fputc(int byte, FILE *file);
size_t ours_fwrite(const void *bytes, size_t size, size_t count, FILE *file);
int ours_fclose(FILE *file);
int ours_asprintf(char **text, const char *format, ...);
char *ours_strndup(const char *text, size_t most);
char *ours_strerror_r(int number, char *room, size_t size);
char *ours_getenv(const char *name);

static uint64_t state;

static uint64_t next(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

/* --- files ----------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/queryprof-system-XXXXXX";

static int make_folder(void **unused)
{
	(void)unused;
	return mkdtemp(folder) && !chdir(folder) && !mkdir("a", 0700) && !mkdir("a/b", 0700) &&
	                       !symlink("a/b", "to_b") && !symlink("../to_b/../b", "a/around") &&
	                       !symlink("/", "root") && !symlink(".", "here") && !symlink("turn", "turn") &&
	                       !symlink("nowhere", "gone") && close(creat("a/file", 0600)) == 0
	               ? 0
	               : -1;
}

static int remove_folder(void **unused)
{
	static const char *const names[] = { "a/file",   "gone", "turn",  "here", "root",
		                             "a/around", "to_b", "lines", "a/b",  "a" };

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		remove(names[i]);
	return chdir("/") || rmdir(folder);
}

static void check_path(const char *path)
{
	char *wanted = realpath(path, NULL), *found;
	int error = errno;

	errno = 0;
	found = ours_realpath(path, NULL);
	if (wanted) {
		if (!found)
			fail_msg("%s: %s", path, strerror(errno));
		assert_string_equal(found, wanted);
	} else {
		assert_null(found);
		assert_int_equal(errno, error);
	}
	free(wanted);
	free(found);
}

static void paths_are_resolved(void **unused)
{
	static const char *const parts[] = { "a",    "b",    "to_b", "around", "root", "here", "turn",
		                             "gone", "file", "..",   ".",      "",     "none", "tmp" };
	char longest[PATH_MAX + 10];

	(void)unused;
	for (int turn = 0; turn < 20000; turn++) {
		char path[200] = "";

		for (uint64_t left = next() % 6 + 1; left > 0; left--) {
			strcat(path, next() % 5 ? "" : "/");
			strcat(path, parts[next() % (sizeof(parts) / sizeof(*parts))]);
			/* libc refuses more paths that have a slash after a file's name. */
			if (left > 1)
				strcat(path, "/");
		}
		if (!strstr(path, "file/"))
			check_path(path);
	}
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	check_path(longest);
	check_path("/");
	check_path("//");
	check_path("/proc/self/exe");
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void folders_are_read(void **unused)
{
	char *wanted[4096], *found[4096];
	size_t wanted_count = 0, found_count = 0;
	const struct dirent *entry;
	DIR *libcs = opendir("/usr/bin"), *ours = ours_opendir("/usr/bin");

	(void)unused;
	while ((entry = readdir(libcs)) && wanted_count < 4096)
		wanted[wanted_count++] = strdup(entry->d_name);
	while ((entry = ours_readdir(ours)) && found_count < 4096)
		found[found_count++] = strdup(entry->d_name);
	assert_int_equal(found_count, wanted_count);
	qsort(wanted, wanted_count, sizeof(*wanted), compare_texts);
	ours_qsort(found, found_count, sizeof(*found), compare_texts);
	for (size_t i = 0; i < found_count; i++) {
		assert_string_equal(found[i], wanted[i]);
		free(found[i]);
		free(wanted[i]);
	}
	closedir(libcs);
	assert_int_equal(ours_closedir(ours), 0);
	assert_null(ours_opendir("/nowhere"));
	assert_int_equal(errno, ENOENT);
}

static void lines_are_read(void **unused)
{
	char *wanted = NULL, *found = NULL;
	size_t wanted_room = 0, found_room = 0;
	FILE *libcs = fopen("lines", "w"), *ours;
	ssize_t size;

	(void)unused;
	for (int line = 0; line < 300; line++)
		fprintf(libcs, "%*d%s", (int)(next() % 9000), line, line == 299 ? "" : "\n");
	fclose(libcs);
	libcs = fopen("lines", "r");
	ours = ours_fopen("lines", "re");
	do {
		size = getline(&wanted, &wanted_room, libcs);
		assert_int_equal(ours_getdelim(&found, &found_room, '\n', ours), size);
		if (size > 0)
			assert_memory_equal(found, wanted, (size_t)size + 1);
	} while (size > 0);
	free(wanted);
	free(found);
	fclose(libcs);
	assert_int_equal(ours_fclose(ours), 0);
	assert_null(ours_fopen("nowhere", "r"));
}

/* --- texts ----------------------------------------------------------------------------------------- */

static void streams_are_written(void **unused)
{
	char *wanted, *found, piece[3000];
	size_t wanted_size, found_size;

	(void)unused;
	memset(piece, 'p', sizeof(piece));
	for (int turn = 0; turn < 50; turn++) {
		FILE *libcs = open_memstream(&wanted, &wanted_size);
		FILE *ours = ours_open_memstream(&found, &found_size);

		for (int step = 0; step < turn * 3; step++) {
			size_t size = next() % sizeof(piece);

			switch (next() % 5) {
			case 0:
				assert_int_equal(ours_fprintf(ours, "%.*s %d", (int)size, piece, step),
				                 fprintf(libcs, "%.*s %d", (int)size, piece, step));
				break;
			case 1: assert_int_equal(ours_fputc(step, ours), fputc(step, libcs)); break;
			case 2:
				assert_true(ours_fputs("text", ours) >= 0);
				fputs("text", libcs);
				break;
			case 3:
				assert_int_equal(ours_fwrite(piece, 1, size, ours),
				                 fwrite(piece, 1, size, libcs));
				break;
			default: assert_int_equal(ours_fprintf(ours, "%s", ""), 0); break;
			}
		}
		fclose(libcs);
		assert_int_equal(ours_fclose(ours), 0);
		assert_int_equal(found_size, wanted_size);
		assert_memory_equal(found, wanted, wanted_size + 1);
		free(found);
		free(wanted);
	}
}

static void texts_are_made(void **unused)
{
	char *text, room[64], libcs[64];

	(void)unused;
	assert_int_equal(ours_asprintf(&text, "%d %s", 7, "seven"), 7);
	assert_string_equal(text, "7 seven");
	free(text);
	assert_string_equal(text = ours_strndup("abcdef", 3), "abc");
	free(text);
	for (int number = 0; number < 140; number++)
		assert_string_equal(ours_strerror_r(number, room, sizeof(room)),
		                    strerror_r(number, libcs, sizeof(libcs)));
	assert_ptr_equal(ours_getenv("PATH"), getenv("PATH"));
	assert_null(ours_getenv("PAT"));
}

/* --- order and time -------------------------------------------------------------------------------- */

struct item {
	uint32_t key, place;
	char more[5];
};

static int compare_items(const void *a, const void *b)
{
	const struct item *one = a, *other = b;

	return one->key < other->key ? -1 : one->key > other->key;
}

static void order_is_stable(void **unused)
{
	static struct item items[5000];

	(void)unused;
	for (int turn = 0; turn < 60; turn++) {
		size_t count = turn < 40 ? (size_t)turn : next() % 5000;

		for (size_t i = 0; i < count; i++)
			items[i] = (struct item){ .key = (uint32_t)(next() % (count / 2 + 1)),
				                  .place = (uint32_t)i };
		ours_qsort(items, count, sizeof(*items), compare_items);
		for (size_t i = 1; i < count; i++)
			assert_true(items[i - 1].key < items[i].key || (items[i - 1].key == items[i].key &&
			                                                items[i - 1].place < items[i].place));
	}
}

static void times_have_their_dates(void **unused)
{
	(void)unused;
	for (int turn = 0; turn < 100000; turn++) {
		time_t time = (time_t)(next() << 8) - (1l << 38);
		struct tm wanted, found;

		gmtime_r(&time, &wanted);
		ours_gmtime_r(&time, &found);
		assert_int_equal(found.tm_sec, wanted.tm_sec);
		assert_int_equal(found.tm_min, wanted.tm_min);
		assert_int_equal(found.tm_hour, wanted.tm_hour);
		assert_int_equal(found.tm_mday, wanted.tm_mday);
		assert_int_equal(found.tm_mon, wanted.tm_mon);
		assert_int_equal(found.tm_year, wanted.tm_year);
		assert_int_equal(found.tm_wday, wanted.tm_wday);
		assert_int_equal(found.tm_yday, wanted.tm_yday);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_resolved),     cmocka_unit_test(folders_are_read),
		cmocka_unit_test(lines_are_read),         cmocka_unit_test(streams_are_written),
		cmocka_unit_test(texts_are_made),         cmocka_unit_test(order_is_stable),
		cmocka_unit_test(times_have_their_dates),
	};

	state = test_seed(34);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
