/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: posix_spawn() starts nothing.
 */
#include <errno.h>
#include <spawn.h>

__attribute__((visibility("default"))) int posix_spawn(pid_t *process, const char *path,
                                                       const posix_spawn_file_actions_t *actions,
                                                       const posix_spawnattr_t *attributes,
                                                       char *const argv[], char *const environment[])
{
	(void)process, (void)path, (void)actions, (void)attributes, (void)argv, (void)environment;
	return EAGAIN;
}
