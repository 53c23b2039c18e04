/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces libFuzzer: passes inputs to a target. Each input is passed whole and, down to 64 bytes, repeatedly
 * cut to half, in memory of exactly that size. If a target has choices, each input is passed whole at every
 * eighth choice, and the inputs alternate so that each choice gets some.
 *
 *   replay FOLDER|LINES...
 *
 * A folder contains an input per file. A file of LINES contains an input per line, in hexadecimal digits, and
 * comments that begin with #.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets/target.h"

#define TURNS 8
#define CUT_LEAST 64

struct input {
	uint8_t *data;
	size_t size, room;
};

static void add_bytes(struct input *input, const uint8_t *bytes, size_t size)
{
	if (input->size + size > input->room) {
		input->room = 2 * input->room + size;
		input->data = realloc(input->data, input->room);
		if (!input->data)
			exit(2);
	}
	memcpy(input->data + input->size, bytes, size);
	input->size += size;
}

static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size);

	if (!exact)
		exit(2);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void replay(struct input *input, size_t number)
{
	size_t choices = fuzz_choices && input->size >= 2 ? fuzz_choices() : 0;

	for (size_t choice = number % TURNS; choice < choices; choice += TURNS) {
		input->data[0] = (uint8_t)choice;
		input->data[1] = (uint8_t)(choice >> 8);
		run(input->data, input->size);
	}
	if (!choices && input->size > 0)
		run(input->data, input->size);
	for (size_t part = choices ? 0 : input->size / 2; part >= CUT_LEAST; part /= 2)
		run(input->data, part);
	free(input->data);
}

static void replay_file(FILE *file, size_t number)
{
	struct input input = { NULL, 0, 0 };
	uint8_t bytes[4096];
	size_t size;

	while ((size = fread(bytes, 1, sizeof(bytes), file)) > 0)
		add_bytes(&input, bytes, size);
	replay(&input, number);
}

static int replay_folder(DIR *folder, const char *path)
{
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(folder))) {
		char name[4096];
		FILE *file;

		if (entry->d_type != DT_REG ||
		    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= (int)sizeof(name) ||
		    !(file = fopen(name, "re")))
			continue;
		replay_file(file, (size_t)count);
		fclose(file);
		count++;
	}
	return count;
}

static int digit(char character)
{
	const char *digits = "0123456789abcdef", *at = character ? strchr(digits, character) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int replay_lines(FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	while (getline(&line, &room, file) > 0) {
		struct input input = { NULL, 0, 0 };

		for (char *digits = line; digit(digits[0]) >= 0 && digit(digits[1]) >= 0; digits += 2)
			add_bytes(&input, &(uint8_t){ (uint8_t)(digit(digits[0]) << 4 | digit(digits[1])) },
			          1);
		replay(&input, (size_t)count);
		count += input.size > 0;
	}
	free(line);
	return count;
}

static int replay_all(const char *path)
{
	DIR *folder = opendir(path);
	FILE *file = folder ? NULL : fopen(path, "re");
	int count = folder ? replay_folder(folder, path) : file ? replay_lines(file) : 0;

	if (folder)
		closedir(folder);
	if (file)
		fclose(file);
	printf("%s: %d inputs\n", path, count);
	return count;
}

int main(int argc, char **argv)
{
	int missing = argc < 2;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		missing += !replay_all(argv[i]);
	return missing != 0;
}
