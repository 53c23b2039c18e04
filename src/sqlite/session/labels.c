/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/labels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "label/sets.h"

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

void session_labels_follow(struct session *session)
{
	char *json = settings_get(session ? &session->settings : NULL, "query_profiler_labels");
	struct qp_label_set *set = json ? make_set(json) : NULL, *before;

	lock_acquire(&lock);
	before = session ? session->labels : defaults;
	if (session) {
		session->labels = set;
		/* Relaxed: runs take the number alone. */
		__atomic_store_n(&session->label_number, set ? set->number : 0, __ATOMIC_RELAXED);
	} else {
		defaults = set;
	}
	lock_release(&lock);
	label_set_release(before);
	free(json);
}

void session_labels_free(struct session *session)
{
	label_set_release(session->labels);
	session->labels = NULL;
	session->label_number = 0;
}

char *session_labels_with(const struct session *session, const char *key, const char *text,
                          const int64_t *number)
{
	char *json = settings_get(session ? &session->settings : NULL, "query_profiler_labels"), *with = NULL;
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
