/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines for a trace file.
 */
#pragma once

/* Puts names and lines into the file. patience: how many seconds others may keep it locked. A command_result,
 * after a complaint. */
int embed_file(const char *path, int patience);
