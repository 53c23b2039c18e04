/*
 * Lines typed by a person: edited as in a shell (libedit, so ~/.editrc holds), with a
 * history that outlives the session.
 *
 * The history is $XDG_STATE_HOME/queryprof/sql_history (~/.local/state without that),
 * readable to its owner only: SQL can hold what nobody else should see. A line is
 * written when it has been typed, so that two shells at once both keep theirs.
 * One editor at a time.
 */
#ifndef QUERYPROF_COMMAND_LINE_EDITOR_H
#define QUERYPROF_COMMAND_LINE_EDITOR_H

#include <stdbool.h>

bool line_editor_open(void); /* false: no memory, or no terminal that it knows */
void line_editor_close(void);

/* The next line with its newline, valid until the next call; NULL: no more, or, with
 * *interrupted, Ctrl-C was pressed. */
const char *line_editor_read(const char *prompt, bool *interrupted);

#endif
