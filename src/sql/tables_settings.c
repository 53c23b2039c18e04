/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.settings and system.metrics.
 */
#include <stdlib.h>
#include <string.h>

#include "sql/metrics.h"
#include "sql/tables.h"
#include "sql/tables_rows.h"
#include "sqlite/session/setting_change.h"

/* --- settings -------------------------------------------------------------- */

enum settings_column { SETTING_NAME, SETTING_VALUE, SETTING_DEFAULT, SETTING_CHANGED };

static const struct column settings_columns[] = {
	[SETTING_NAME] = { "name", "TEXT", 0 },
	[SETTING_VALUE] = { "value", "", 0 },
	[SETTING_DEFAULT] = { "default", "", 0 },
	[SETTING_CHANGED] = { "changed", "INTEGER", 0 },
	{ "min", "INTEGER", 0 },
	{ "max", "INTEGER", 0 },
	{ "unit", "TEXT", 0 },
	{ "scope", "TEXT", 0 }, /* session or process */
	{ "description", "TEXT", 0 },
};
#define SETTINGS_COLUMNS ((int)(sizeof(settings_columns) / sizeof(*settings_columns)))

static void add_value(struct table_rows *rows, const struct setting *setting, const char *text)
{
	if (setting_is_text(setting) || !text)
		table_add_text(rows, text);
	else
		table_add_integer(rows, strtoll(text, NULL, 10));
}

static void fill_settings(struct table_rows *rows, struct session *session)
{
	for (const struct setting *setting = NULL; (setting = settings_next(setting));) {
		char *value = settings_get(&session->settings, setting->name);
		char *by_default = settings_get_default(&session->settings, setting->name);

		table_add_text(rows, setting->name);
		add_value(rows, setting, value);
		add_value(rows, setting, by_default);
		table_add_integer(rows, value && by_default && strcmp(value, by_default) != 0);
		if (setting_is_text(setting)) {
			table_add_text(rows, NULL);
			table_add_text(rows, NULL);
		} else {
			table_add_integer(rows, setting->min);
			table_add_integer(rows, setting->max);
		}
		table_add_text(rows, setting->unit);
		table_add_text(rows, setting->is_process_wide ? "process" : "session");
		table_add_text(rows, setting->description);
		free(value);
		free(by_default);
	}
}

static int update_setting(struct session *session, int64_t row, sqlite3_value **columns, char **error)
{
	const struct setting *setting = settings_next(NULL);
	const char *value;
	char *reason;
	int rc;

	while (row-- > 0)
		setting = settings_next(setting);
	for (int i = 0; i < SETTINGS_COLUMNS; i++)
		if (i != SETTING_VALUE && !sqlite3_value_nochange(columns[i])) {
			*error = sqlite3_mprintf("system.settings.%s cannot be changed, only value can",
			                         settings_columns[i].name);
			return SQLITE_ERROR;
		}
	if (sqlite3_value_nochange(columns[SETTING_VALUE]))
		return SQLITE_OK;
	if (sqlite3_value_type(columns[SETTING_VALUE]) == SQLITE_NULL) {
		*error = sqlite3_mprintf("%s = NULL; expected a value, or 'DEFAULT' to restore the default",
		                         setting->name);
		return SQLITE_ERROR;
	}
	value = (const char *)sqlite3_value_text(columns[SETTING_VALUE]);
	if (!value)
		return SQLITE_NOMEM;
	rc = session_set(session, setting->name, value, SETTING_FROM_SQL, &reason);
	if (!rc)
		return SQLITE_OK;
	*error = sqlite3_mprintf("%s", reason ? reason : "out of memory");
	free(reason);
	return SQLITE_ERROR;
}

const struct table table_settings = {
	.name = "settings",
	TABLE_COLUMNS(settings_columns),
	.fill = fill_settings,
	.update = update_setting,
};

/* --- metrics --------------------------------------------------------------- */

static const struct column metrics_columns[] = {
	{ "metric", "TEXT", 0 },
	{ "value", "", 0 },
	{ "description", "TEXT", 0 },
};

static int add_metric(void *context, const qp_metric *metric)
{
	struct table_rows *rows = context;

	table_add_text(rows, metric->name);
	if (metric->text)
		table_add_text(rows, metric->text);
	else
		table_add_integer(rows, metric->value);
	table_add_text(rows, metric->description);
	return 0;
}

static void fill_metrics(struct table_rows *rows, struct session *session)
{
	(void)session;
	metrics_each(add_metric, rows);
}

const struct table table_metrics = { .name = "metrics",
	                             TABLE_COLUMNS(metrics_columns),
	                             .fill = fill_metrics };
