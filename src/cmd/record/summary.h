/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record` and `attach` print at their end.
 */
#pragma once

#include "cmd/record/recording.h"

/* Adds names to the trace file, and prints a summary. `program` ended with `status`, as waitpid() returns
 * it; NULL: none did. */
void summary_print(const struct recording *recording, const char *program, int status);

/* After the remaining processes have ended: ends --push, folds the collection, and adds names. */
void summary_end_later(struct collection *collection);
