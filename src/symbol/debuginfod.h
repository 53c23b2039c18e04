/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers.
 *
 * The process opens a connection only if the environment has DEBUGINFOD_URLS. elfutils
 * documents two more variables: DEBUGINFOD_CACHE_PATH is the folder of fetched files, and
 * DEBUGINFOD_TIMEOUT the longest time of one request in seconds, 10 if not set. A process
 * requests each build id once. After a request that failed in another way than "no such
 * file" (no response, or a slow one) it sends no more.
 */
#pragma once

#include <stdbool.h>

/* Whether the environment names servers. */
bool debuginfod_is_wanted(void);

/* Fetches the debug file of a build id (hex). One thread at a time; others wait. */
void debuginfod_fetch(const char *build_id);

/* The path of the file that was fetched for the build id, NULL when none was. Never
 * waits. The text stays valid. */
const char *debuginfod_path(const char *build_id);
