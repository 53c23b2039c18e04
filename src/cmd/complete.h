/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash.
 */
#pragma once

/* Prints the candidates for the word at `cursor` of a command line, which is without the
 * command's own name. A command_result. */
int complete_words(int cursor, int count, char **words);
