/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels that people write as JSON.
 */
#ifndef QUERYPROF_LABEL_JSON_H
#define QUERYPROF_LABEL_JSON_H

#include "label/pairs.h"

/* Adds the members of a JSON object, of which each is a text, an integer, or null: no label.
 * "" is an object without members. False: the text is something else, or there is no memory. */
bool label_pairs_add_json(struct label_pairs *pairs, const char *json);

#endif
