/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/setting_change.h"

#include "sqlite/session/labels.h"
#include "sqlite/session/recording.h"

int session_set(struct session *session, const char *name, const char *value, enum setting_source source,
                char **error)
{
	int rc = settings_set(session ? &session->settings : NULL, name, value, source, error);

	/* Release: a thread that sees the number also sees the change. */
	if (!rc && session)
		__atomic_add_fetch(&session->settings_version, 1, __ATOMIC_RELEASE);
	if (!rc)
		session_labels_follow(session ? &session->labels : NULL, session ? &session->settings : NULL);
	if (!rc && session)
		session_watch(session);
	else if (!rc)
		session_watch_strangers();
	return rc;
}
