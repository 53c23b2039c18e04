/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel lists a process's threads; its first one stays in the list when it has
 * ended, as a zombie. Without /proc the last thread is not known, and the process stays.
 */
#include "store/last_thread.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "base/task_file.h"

bool last_thread_is_ours(int ours)
{
	char text[256];
	const char *state = NULL;
	struct dirent *entry;
	int threads = 0;
	DIR *folder = opendir("/proc/self/task");

	while (folder && (entry = readdir(folder)))
		threads += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	if (threads != 1 + ours)
		return false;
	if (task_file_read((uint32_t)getpid(), "stat", text, sizeof(text)))
		state = strrchr(text, ')');
	return state && state[1] && state[2] == 'Z';
}
