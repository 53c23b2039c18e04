/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a process by its environment.
 * A child process of the command reads the environments. While a process is inside exec(), the kernel makes
 * each reader of its /proc/PID/environ wait, and exec() closes files. If the server of such a file (NFS,
 * FUSE) does not respond, the wait never ends.
 */
#pragma once

#include <sys/types.h>

/* A process whose program was started with `line`, NAME=VALUE, in its environment; 0: none. A process that
 * holds the reader for a second is skipped. */
pid_t environments_find(const char *line);
