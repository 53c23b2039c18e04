/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library contains a recorder: the rooms up to `recorder`. A process under `queryprof record` may
 * have loaded one before (libqueryprof-recorder.so). Only one recorder can follow SQLite's functions,
 * so that one continues, and the rest of the library calls it. So a connection of a recorded process
 * that loads the extension has all of SQL, and the program's labels and settings are recorded.
 *
 * The calls pass stubs (make_interface), which jump through the table of one recorder or the other.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "base/lock.h"
#include "process/fork.h"
#include "recorder_table.h"
#include "settings/settings.h"

extern const void *const RECORDER_TABLE[];

__attribute__((visibility("hidden"))) const void *const *recorder_functions = RECORDER_TABLE;

/* The linker names the ends of a section. */
extern const struct lock *const __start_queryprof_locks[] __attribute__((visibility("hidden")));
extern const struct lock *const __stop_queryprof_locks[] __attribute__((visibility("hidden")));
extern const struct setting *const __start_queryprof_settings[] __attribute__((visibility("hidden")));
extern const struct setting *const __stop_queryprof_settings[] __attribute__((visibility("hidden")));

/* Before the other constructors of the rest. */
__attribute__((constructor(101))) static void choose(void)
{
	void *recorder = dlopen("libqueryprof-recorder.so", RTLD_LAZY | RTLD_NOLOAD);
	const void *const *table = recorder ? dlsym(recorder, RECORDER_TABLE_NAME) : NULL;

	if (!table)
		return;
	/* The one call that does not pass the table, because it is for the library's own recorder. */
	fork_disable();
	recorder_functions = table;
	locks_join(__start_queryprof_locks, __stop_queryprof_locks);
	settings_join(__start_queryprof_settings, __stop_queryprof_settings);
}
