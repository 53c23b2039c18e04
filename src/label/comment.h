/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels that frameworks write into SQL as comments:
 *
 *   controller='users',traceparent='00-…'     sqlcommenter; Rails' query_log_tags
 *   application:Blog,controller:users         Marginalia; Rails' query_log_tags by default
 *
 * Only comments before the statement and behind it count, and only those that are such a list
 * from their first character to their last: what people write for people is no label.
 */
#pragma once

#include <stddef.h>

/* The set that is in the comments of a statement, as text (label/pairs.h), malloc'ed; of two
 * labels with one key the one further back counts. NULL: none, or no memory. The statement need
 * not be valid SQL, complete or free of zeros. */
char *comment_labels(const char *sql, size_t size);
