/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines for a trace file.
 */
#pragma once

/* Puts names and lines into the file; others may keep it locked for so many seconds. A
 * command_result, after a complaint. */
int embed_file(const char *path, int patience);
