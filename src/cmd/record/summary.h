/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record` and `attach` print at their end.
 */
#pragma once

#include "cmd/record/recording.h"

/* Adds names to the trace file, and prints a summary. `program` ended with `status`, as waitpid() returns
 * it; NULL: none did. */
void summary_print(const struct recording *recording, const char *program, int status);

/* Adds names later, after the remaining processes have ended. */
void summary_embed_later(const char *path);
