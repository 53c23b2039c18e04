/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as a graph. Its boxes are redder the more time they take themselves.
 */
#pragma once

#include "cmd/file/shown_type.h"
#include "cmd/read/plan_words.h"

/* Prints it inside a graph of Graphviz's language. plan: its number. */
void plan_dot_print(const struct tree *tree, const struct shown_type *type, size_t plan);
