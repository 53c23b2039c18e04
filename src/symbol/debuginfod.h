/*
 * Debug files from debuginfod servers, where the environment names some.
 *
 * Somebody who set DEBUGINFOD_URLS wants programs to fetch debug files; nobody else
 * ever gets a connection opened for him. In the environment as well, as elfutils
 * documents it: where the files are kept (DEBUGINFOD_CACHE_PATH), and
 * DEBUGINFOD_TIMEOUT, here the most seconds that one attempt takes, 10 if not set.
 * Each build id is asked for once in the life of a process, and once an attempt
 * failed otherwise than by "there is no such file" (no answer, an answer that takes
 * too long), the process asks for no other.
 */
#ifndef QUERYPROF_SYMBOL_DEBUGINFOD_H
#define QUERYPROF_SYMBOL_DEBUGINFOD_H

#include <stdbool.h>

/* Whether the environment names servers. */
bool debuginfod_is_wanted(void);

/* Gets the debug file of a build id (hex). One thread at a time: others wait. */
void debuginfod_fetch(const char *build_id);

/* Where a file that was fetched lies, NULL when none was. Never waits. The text stays
 * valid. */
const char *debuginfod_path(const char *build_id);

#endif
