/* SPDX-License-Identifier: Apache-2.0 */
/* In libFuzzer's place: gives a target the files of the folders named, each whole and cut to its half
 * again and again, in memory of exactly that size. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(FILE *file)
{
	uint8_t *data = NULL;
	size_t size = 0, room = 0;

	do {
		room += 65536;
		data = realloc(data, room);
		if (!data)
			exit(2);
		size += fread(data + size, 1, room - size, file);
	} while (size == room);
	for (size_t part = size; part; part /= 2) {
		uint8_t *exact = malloc(part);

		if (!exact)
			exit(2);
		memcpy(exact, data, part);
		LLVMFuzzerTestOneInput(exact, part);
		free(exact);
	}
	free(data);
}

static int replay_folder(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int count = 0;

	while (folder && (entry = readdir(folder))) {
		char name[4096];
		FILE *file;

		if (entry->d_type != DT_REG ||
		    snprintf(name, sizeof name, "%s/%s", path, entry->d_name) >= (int)sizeof name ||
		    !(file = fopen(name, "re")))
			continue;
		replay(file);
		fclose(file);
		count++;
	}
	if (folder)
		closedir(folder);
	printf("%s: %d files\n", path, count);
	return count;
}

int main(int argc, char **argv)
{
	int missing = argc < 2;

	for (int i = 1; i < argc; i++)
		missing += !replay_folder(argv[i]);
	return missing != 0;
}
