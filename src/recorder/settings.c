/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings and labels from C (queryprof.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "sqlite/session/labels.h"
#include "sqlite/session/session.h"
#include "sqlite/session/setting_change.h"

static int session_for(sqlite3 *db, struct session **session)
{
	*session = db ? session_of(db) : NULL;
	if (db && !*session)
		return error_set(QP_INVALID, "the connection is not attached, call qp_attach() first");
	return QP_OK;
}

int qp_set(sqlite3 *db, const char *name, const char *value)
{
	struct session *session;
	char *error = NULL;
	int code = session_for(db, &session);

	if (code)
		return code;
	if (!name || !value)
		return error_set(QP_INVALID, "qp_set: NULL; a name and a value are required");
	settings_init();
	code = session_set(session, name, value, SETTING_FROM_C, &error);
	return code ? error_detach(code, error, "the setting was refused") : QP_OK;
}

int qp_set_label(sqlite3 *db, const char *key, const char *text)
{
	struct session *session;
	int code = session_for(db, &session);
	char *labels;

	if (code)
		return code;
	if (!key || !*key)
		return error_set(QP_INVALID, "qp_set_label: a key is needed");
	settings_init();
	labels = session_labels_with(session ? &session->settings : NULL, key, text, NULL);
	code = labels ? qp_set(db, "query_profiler_labels", labels)
	              : error_set(QP_NOMEM, "qp_set_label: no memory");
	free(labels);
	return code;
}

int qp_get(sqlite3 *db, const char *name, char *value, size_t size)
{
	struct session *session;
	int code = session_for(db, &session);
	char *text;

	if (code)
		return code;
	if (!name || !value || !size)
		return error_set(QP_INVALID, "qp_get: NULL; a name and memory for the value are required");
	settings_init();
	text = settings_get(session ? &session->settings : NULL, name);
	if (!text)
		return error_set(QP_NOT_FOUND, "there is no setting %s", name);
	snprintf(value, size, "%s", text);
	free(text);
	return QP_OK;
}

void qp_lock_settings(void)
{
	settings_lock();
}
