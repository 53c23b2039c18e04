/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/recording.h"

#include <stddef.h>

static bool (*recording)(void); /* NULL: only connections that were attached */

void session_record_all(bool (*start)(void))
{
	__atomic_store_n(&recording, start, __ATOMIC_RELEASE);
	session_watch_strangers();
}

bool session_recording(void)
{
	return __atomic_load_n(&recording, __ATOMIC_ACQUIRE) != NULL;
}

bool session_start_recording(void)
{
	bool (*start)(void) = __atomic_load_n(&recording, __ATOMIC_ACQUIRE);

	return start && start();
}

void session_watch_strangers(void)
{
	static bool watched;
	struct session_settings settings;
	bool wanted;

	if (!session_recording())
		return;
	session_defaults(&settings);
	wanted = session_wants_samples(&settings);
	if (__atomic_exchange_n(&watched, wanted, __ATOMIC_RELAXED) != wanted)
		sessions_watch_more(wanted ? 1 : -1);
}
