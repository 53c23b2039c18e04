/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record` and `attach` print at their end.
 */
#pragma once

#include "cmd/record/recording.h"

/* Adds names to the trace file, and prints what it has. `program` that ended with `status`, as waitpid()
 * gives it; NULL: none did. */
void summary_print(const struct recording *recording, const char *program, int status);

/* Adds names to it later, when processes have ended that went on. */
void summary_embed_later(const char *path);
