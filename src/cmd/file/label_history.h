/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof export --format label-history: the view label_history of a trace file, as CSV.
 */
#pragma once

/* A command_result. */
int label_history_export(const char *path, const char *out_path);
