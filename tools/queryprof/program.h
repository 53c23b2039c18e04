/*
 * Runs a program in such a way that whoever started us need not tell the two apart:
 * what reaches us reaches it, and its end is ours.
 */
#ifndef QUERYPROF_COMMAND_PROGRAM_H
#define QUERYPROF_COMMAND_PROGRAM_H

/* Runs argv (found as the shell finds it), with our environment and descriptors, until
 * it ends. 0 and its end as waitpid() gives it, or the errno value of why it could not
 * be started. Afterwards our own standard input and output lead nowhere. */
int program_run(char **argv, int *status);

/* Ends this process as the program has ended: the same exit status or signal. */
_Noreturn void program_end_alike(int status);

#endif
