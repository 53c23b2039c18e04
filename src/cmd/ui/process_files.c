/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ui/process_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

FILE *process_file(pid_t process, pid_t thread, const char *name)
{
	char path[80];

	if (thread)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)process, (int)thread, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)process, name);
	return fopen(path, "re");
}

DIR *process_folder(pid_t process, const char *name)
{
	char path[80] = "/proc";

	if (process)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)process, name);
	return opendir(path);
}

int process_next(DIR *folder)
{
	const struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (isdigit((unsigned char)*entry->d_name))
			return atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return -1;
}

long long process_number(pid_t process, pid_t thread, const char *file, const char *name, int base)
{
	FILE *lines = process_file(process, thread, file);
	const size_t size = strlen(name);
	long long value = -1;
	char line[512];

	while (lines && value < 0 && fgets(line, sizeof(line), lines))
		if (strncmp(line, name, size) == 0 && line[size] == ':')
			value = (long long)strtoull(line + size + 1, NULL, base);
	if (lines)
		fclose(lines);
	return value;
}

/* The fields after the name, which may contain any character. */
static char read_stat(pid_t process, pid_t thread, unsigned long long *start)
{
	FILE *file = process_file(process, thread, "stat");
	char text[1024], state = 0;
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	const char *end;

	if (file)
		fclose(file);
	text[size] = '\0';
	end = strrchr(text, ')');
	if (end &&
	    sscanf(end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
	           &state, start) < 2)
		state = 0;
	return state;
}

char process_state(pid_t process, pid_t thread)
{
	unsigned long long start;

	return read_stat(process, thread, &start);
}

uint64_t process_start_ticks(pid_t process)
{
	unsigned long long start = 0;

	return read_stat(process, 0, &start) ? start : 0;
}

bool process_runs(pid_t process, uint64_t start_ticks)
{
	unsigned long long start;
	const char state = read_stat(process, 0, &start);

	return state && state != 'Z' && state != 'X' && start == start_ticks;
}

void process_name(pid_t process, pid_t thread, char *name, size_t size)
{
	FILE *file = process_file(process, thread, "comm");

	if (!file || !fgets(name, (int)size, file))
		*name = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

int process_call(pid_t process, pid_t thread)
{
	FILE *file = process_file(process, thread, "syscall");
	int call = -1;

	if (file && fscanf(file, "%d", &call) != 1) /* "running" */
		call = -1;
	if (file)
		fclose(file);
	return call;
}
