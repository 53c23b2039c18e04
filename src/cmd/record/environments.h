/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a process by its environment.
 *
 * A process that the command starts reads the environments. While a process is inside exec(), the kernel
 * makes each reader of its /proc/PID/environ wait, and exec() closes files: if the server of such a file
 * (NFS, FUSE) does not respond, the wait never ends.
 */
#pragma once

#include <sys/types.h>

/* A process that executes a program which was started with `line`, NAME=VALUE, in its environment; 0: there
 * is none. A process that holds the reader for a second is skipped. */
pid_t environments_find(const char *line);
