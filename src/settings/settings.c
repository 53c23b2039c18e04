/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way to change and to show the settings that the rooms declare, whichever way a value comes.
 * value.c checks values.
 *
 * A session's setting has three values: the DEFAULT of the process, that of new sessions, and the
 * current one. A process's setting has no value for new sessions.
 */
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "base/lock.h"
#include "base/text.h"
#include "queryprof.h"
#include "settings/value.h"

/* The linker names the ends of a section. Weak, because a program may have no setting at all. */
extern const struct setting *const __start_queryprof_settings[] __attribute__((weak, visibility("hidden")));
extern const struct setting *const __stop_queryprof_settings[] __attribute__((weak, visibility("hidden")));

/* Of another library, which calls this one's functions. */
static const struct setting *const *joined; /* atomic */
static const struct setting *const *joined_end;

/* NULL: that was the last. If two have the same name, the first counts. */
static const struct setting *const *next_in_list(const struct setting *const *at)
{
	const struct setting *const *others = __atomic_load_n(&joined, __ATOMIC_ACQUIRE);

	at = at ? at + 1 : __start_queryprof_settings;
	if (at == __stop_queryprof_settings)
		at = others;
	return at == joined_end ? NULL : at;
}

#define EACH_SETTING(at)                                                                                     \
	const struct setting *const *at = next_in_list(NULL);                                                \
	at;                                                                                                  \
	at = next_in_list(at)

/* Lock order: `changing`, then `values`. The first is held while the room takes a
 * change over, which may last; the second only to copy. */
LOCK_DEFINE(changing, LOCK_SETTINGS_CHANGE);
LOCK_DEFINE(values, LOCK_SETTINGS_VALUES);
static bool locked;
static char *environment_error;
static char *newest_error; /* under `values`; NULL: none */
static struct once once;

/* --- the list -------------------------------------------------------------- */

const struct setting *settings_find(const char *name)
{
	for (EACH_SETTING(at))
		if (!strcasecmp((*at)->name, name))
			return *at;
	return NULL;
}

const struct setting *settings_next(const struct setting *before)
{
	const struct setting *next = NULL;

	for (EACH_SETTING(at))
		if ((!before || strcmp((*at)->name, before->name) > 0) &&
		    (!next || strcmp((*at)->name, next->name) < 0))
			next = *at;
	return next;
}

static void *storage_of(const struct setting *setting, const struct session_settings *of)
{
	return of && !setting->is_process_wide ? (char *)of + setting->offset : setting->value;
}

static void *default_storage_of(const struct setting *setting, const struct session_settings *of)
{
	return of && !setting->is_process_wide ? setting->value : setting->base;
}

/* --- the environment ------------------------------------------------------- */

void settings_variable(const char *name, char *variable, size_t size)
{
	size_t used = (size_t)snprintf(variable, size, "QUERYPROF_");

	for (; *name && used + 1 < size; name++)
		variable[used++] = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
	variable[used] = 0;
}

static void report_environment(char *error)
{
	char *all = text_format("%s%senvironment: %s", environment_error ? environment_error : "",
	                        environment_error ? "; " : "", error ? error : "out of memory");

	free(error);
	if (all) {
		free(environment_error);
		environment_error = all;
	}
}

static void write_both(const struct setting *setting, const struct setting_value *value)
{
	setting_write(setting, setting->value, value);
	setting_write(setting, setting->base, value);
}

static void read_environment(const struct setting *setting, struct setting_value *value)
{
	char variable[128], *reason = NULL;
	const char *text;
	int rc;

	settings_variable(setting->name, variable, sizeof(variable));
	text = setting->is_for_one_statement ? NULL : environment_value(variable);
	if (!text)
		return;
	rc = setting_parse(setting, text, value) ? QP_OK : QP_INVALID;
	if (!rc && setting->apply)
		rc = setting->apply(value, &reason);
	if (rc)
		report_environment(setting_error(setting, text, rc, reason));
	else
		write_both(setting, value);
}

static void read_default(const struct setting *setting, struct setting_value *value)
{
	value->setting = setting;
	value->number = setting->default_value;
	strcpy(value->text, setting->default_text ? setting->default_text : "");
	write_both(setting, value);
	read_environment(setting, value);
}

static void read_defaults(void)
{
	static struct setting_value value; /* it must not fail, and is too large for a small stack */

	for (const struct setting *setting = NULL; (setting = settings_next(setting));)
		read_default(setting, &value);
}

void settings_init(void)
{
	once_do(&once, read_defaults);
}

void settings_read_environment(void)
{
	settings_init();
	read_defaults();
}

void settings_join(const struct setting *const *first, const struct setting *const *end)
{
	static struct setting_value value;

	settings_init();
	joined_end = end;
	__atomic_store_n(&joined, first, __ATOMIC_RELEASE);
	for (; first < end; first++)
		if (settings_find((*first)->name) == *first)
			read_default(*first, &value);
}

const char *settings_environment_error(void)
{
	settings_init();
	return environment_error;
}

/* --- changing -------------------------------------------------------------- */

static void write_value(const struct setting *setting, void *storage, const struct setting_value *value)
{
	lock_acquire(&values);
	setting_write(setting, storage, value);
	lock_release(&values);
}

static int apply(const struct setting *setting, void *storage, const struct setting_value *value,
                 char **reason)
{
	int rc;

	lock_acquire(&changing);
	rc = setting->apply(value, reason);
	if (!rc)
		write_value(setting, storage, value);
	lock_release(&changing);
	return rc;
}

static int change(const struct setting *setting, struct session_settings *of, const char *text,
                  struct setting_value *value, char **reason)
{
	value->setting = setting;
	if (!strcasecmp(text, "DEFAULT")) {
		lock_acquire(&values);
		setting_read(setting, default_storage_of(setting, of), value);
		lock_release(&values);
	} else if (!setting_parse(setting, text, value)) {
		return QP_INVALID;
	}
	if (setting->apply)
		return apply(setting, storage_of(setting, of), value, reason);
	write_value(setting, storage_of(setting, of), value);
	return QP_OK;
}

/* So that an UPDATE of all settings can leave one as it is. */
static bool is_value(const struct setting *setting, const struct session_settings *of, const char *text)
{
	char *now = settings_get(of, setting->name);
	bool is = now && !strcmp(now, text);

	free(now);
	return is;
}

static int set(struct session_settings *of, const char *name, const char *text, enum setting_source source,
               char **error)
{
	const struct setting *setting;
	struct setting_value *value;
	char *reason = NULL;
	int rc;

	settings_init();
	*error = NULL;
	setting = settings_find(name);
	if (!setting) {
		*error = text_format(
			"%.*s: there is no such setting; SELECT name FROM system.settings lists them",
			(int)text_fit(name, SETTING_SHOWN), name);
		return QP_NOT_FOUND;
	}
	if (source == SETTING_FROM_SQL && __atomic_load_n(&locked, __ATOMIC_RELAXED)) {
		*error = setting_error(setting, text, QP_LOCKED,
		                       text_format("settings are locked by the host program"));
		return QP_LOCKED;
	}
	if (source == SETTING_FROM_SQL && setting->is_hosts && !is_value(setting, of, text)) {
		*error = setting_error(setting, text, QP_LOCKED,
		                       text_format("only the host program can change it, with qp_set() "
		                                   "or the environment at its start"));
		return QP_LOCKED;
	}
	value = calloc(1, sizeof(*value)); /* 4 KiB: too much for a host's small stack */
	if (!value)
		return QP_NOMEM;
	rc = change(setting, of, text, value, &reason);
	if (rc)
		*error = setting_error(setting, text, rc, reason);
	free(value);
	return rc;
}

int settings_set(struct session_settings *of, const char *name, const char *text, enum setting_source source,
                 char **error)
{
	int rc = set(of, name, text, source, error);

	if (rc && *error) {
		char *copy = strdup(*error);
		lock_acquire(&values);
		free(newest_error);
		newest_error = copy;
		lock_release(&values);
	}
	return rc;
}

char *settings_newest_error(void)
{
	lock_acquire(&values);
	char *copy = newest_error ? strdup(newest_error) : NULL;
	lock_release(&values);
	return copy;
}

void settings_lock(void)
{
	__atomic_store_n(&locked, true, __ATOMIC_RELAXED);
}

/* --- showing --------------------------------------------------------------- */

void settings_copy(void *to, const void *from, size_t size)
{
	settings_init();
	lock_acquire(&values);
	memcpy(to, from, size);
	lock_release(&values);
}

static char *value_text(const struct setting *setting, const void *storage)
{
	struct setting_value *value = calloc(1, sizeof(*value));
	char *text;

	if (!value)
		return NULL;
	lock_acquire(&values);
	setting_read(setting, storage, value);
	lock_release(&values);
	text = setting_is_text(setting) ? strdup(value->text) : text_format("%lld", (long long)value->number);
	free(value);
	return text;
}

char *settings_get(const struct session_settings *of, const char *name)
{
	const struct setting *setting = settings_find(name);

	settings_init();
	return setting ? value_text(setting, storage_of(setting, of)) : NULL;
}

char *settings_get_default(const struct session_settings *of, const char *name)
{
	const struct setting *setting = settings_find(name);

	settings_init();
	return setting ? value_text(setting, default_storage_of(setting, of)) : NULL;
}
