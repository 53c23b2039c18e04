/*
 * Completion for bash.
 */
#ifndef QUERYPROF_COMMAND_COMPLETE_H
#define QUERYPROF_COMMAND_COMPLETE_H

/* Prints what the word at `cursor` of a command line, without the command's own name, can
 * become. A command_result. */
int complete_words(int cursor, int count, char **words);

#endif
