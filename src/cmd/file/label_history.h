/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof export --format label-history: the view label_history of a trace file, as CSV.
 */
#ifndef QUERYPROF_CMD_FILE_LABEL_HISTORY_H
#define QUERYPROF_CMD_FILE_LABEL_HISTORY_H

/* A command_result. */
int label_history_export(const char *path, const char *out_path);

#endif
