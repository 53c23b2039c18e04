/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "label/sets.h"
#include "settings/settings.h"

LOCK_DEFINE(lock, LOCK_SESSION_LABELS);
static struct qp_label_set *defaults; /* under the lock */

static struct qp_label_set *make_set(const char *json)
{
	struct label_pairs pairs = { .items = { 0 } };
	struct qp_label_set *set = NULL;

	if (*json && label_pairs_add_json(&pairs, json))
		set = label_set_of(&pairs, false);
	label_pairs_free(&pairs);
	return set;
}

void session_labels_follow(struct session_labels *labels, const struct session_settings *settings)
{
	char *json = settings_get(settings, "query_profiler_labels");
	struct qp_label_set *set = json ? make_set(json) : NULL, *before;

	lock_acquire(&lock);
	before = labels ? labels->set : defaults;
	if (labels) {
		labels->set = set;
		/* Relaxed: runs take the number alone. */
		__atomic_store_n(&labels->number, set ? set->number : 0, __ATOMIC_RELAXED);
	} else {
		defaults = set;
	}
	lock_release(&lock);
	label_set_release(before);
	free(json);
}

void session_labels_free(struct session_labels *labels)
{
	label_set_release(labels->set);
	*labels = (struct session_labels){ 0, NULL };
}

char *session_labels_with(const struct session_settings *settings, const char *key, const char *text,
                          const int64_t *number)
{
	char *json = settings_get(settings, "query_profiler_labels"), *with = NULL;
	struct label_pairs pairs = { .items = { 0 } };
	bool has_memory = json && label_pairs_add_json(&pairs, json);

	label_pairs_remove(&pairs, key);
	if (has_memory && number)
		has_memory = label_pairs_add_number(&pairs, key, *number, NULL);
	else if (has_memory && text)
		has_memory = label_pairs_add(&pairs, key, strlen(key), text, strlen(text));
	if (has_memory)
		with = label_pairs_text(&pairs);
	label_pairs_free(&pairs);
	free(json);
	return with;
}
