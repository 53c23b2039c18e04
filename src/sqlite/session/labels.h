/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's own labels. The setting query_profiler_labels has them; the set that its
 * queries are under follows it.
 */
#pragma once

#include <stdint.h>

struct qp_label_set;
struct session_settings;

struct session_labels {
	uint64_t number; /* atomic; of the session's queries, 0: none */
	struct qp_label_set *set;
};

/* The setting may be another now. Both NULL: of what new sessions and queries of qp_query_begin()
 * start with. */
void session_labels_follow(struct session_labels *labels, const struct session_settings *settings);

/* The session's memory will belong to another one. */
void session_labels_free(struct session_labels *labels);

/* The setting, NULL: the default, with one label more, changed, or without it: `text` NULL and `number` NULL.
 * A value for session_set(), malloc'ed; NULL: no memory. */
char *session_labels_with(const struct session_settings *settings, const char *key, const char *text,
                          const int64_t *number);
