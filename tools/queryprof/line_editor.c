/*
 * See line_editor.h.
 */
#include "line_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#define HISTORY_LINES 1000      /* that are offered */
#define HISTORY_BYTES (1 << 20) /* that the file may have before it is cut */

static EditLine *editor;
static History *history_of_lines;
static FILE *history_file; /* to be appended to; NULL: there is none */
static const char *prompt_now;
static volatile sig_atomic_t was_interrupted;
static sigset_t mask_while_waiting;

static char *find_prompt(EditLine *of)
{
	(void)of;
	return (char *)prompt_now;
}

static void note_interrupt(int signal)
{
	(void)signal;
	was_interrupted = 1;
}

/* --- the history's file ------------------------------------------------------------ */

/* The path, its folders made. NULL: nowhere. */
static char *find_history(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int made;

	if (state && state[0] == '/') /* the specification's condition */
		made = asprintf(&path, "%s/queryprof/sql_history", state);
	else if (home && home[0] == '/')
		made = asprintf(&path, "%s/.local/state/queryprof/sql_history", home);
	else
		return NULL;
	if (made < 0)
		return NULL;
	for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = 0;
		mkdir(path, 0700); /* or it is there; open() tells */
		*slash = '/';
	}
	return path;
}

static void add_to_history(const char *line)
{
	HistEvent event;
	history(history_of_lines, &event, H_ENTER, line);
}

static void read_history(FILE *file)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, file) > 0)
		add_to_history(line);
	free(line);
}

/* The lines that are offered, and no others. A shell that has the old file open goes on
 * writing to it: what it adds is lost, the file is not. */
static void cut_history(const char *path)
{
	char *shorter = NULL;
	HistEvent event;
	int fd = asprintf(&shorter, "%s.XXXXXX", path) < 0 ? -1 : mkostemp(shorter, O_CLOEXEC); /* 0600 */
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (file) {
		for (int at = history(history_of_lines, &event, H_LAST); at >= 0;
		     at = history(history_of_lines, &event, H_PREV))
			fputs(event.str, file);
		if (fclose(file) != 0 || rename(shorter, path) != 0)
			unlink(shorter);
	}
	free(shorter);
}

static FILE *open_history(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat status;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || fchmod(fd, 0600) != 0) {
		close(fd);
		return NULL;
	}
	return fdopen(fd, "a+");
}

static void load_history(void)
{
	struct stat status;
	char *path = find_history();

	history_file = path ? open_history(path) : NULL;
	if (history_file) {
		read_history(history_file);
		if (fstat(fileno(history_file), &status) == 0 && status.st_size > HISTORY_BYTES) {
			cut_history(path);
			fclose(history_file);
			history_file = open_history(path);
		}
	}
	free(path);
}

static void keep_line(const char *line)
{
	if (line[strspn(line, " \t\n")] == 0)
		return;
	add_to_history(line);
	if (history_file) {
		fputs(line, history_file);
		fflush(history_file);
	}
}

/* --- the editor --------------------------------------------------------------------- */

/* SIGINT is let in only while we wait: between two keys it would find nothing to end. */
static int read_key(EditLine *of, wchar_t *key)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
	mbstate_t state = { 0 };
	sigset_t pending;

	for (;;) {
		char byte;
		int ready = ppoll(&terminal, 1, NULL, &mask_while_waiting);
		size_t size;

		if (was_interrupted || (ready < 0 && errno != EINTR))
			return -1;
		if (ready < 0) {
			/* The window has changed, or the shell was stopped. Ctrl-C reaches the
			 * editor first, which sends it on. */
			if (sigpending(&pending) == 0 && !sigismember(&pending, SIGINT))
				el_set(of, EL_REFRESH);
			continue;
		}
		if (read(STDIN_FILENO, &byte, 1) != 1)
			return 0;
		size = mbrtowc(key, &byte, 1, &state);
		if (size == (size_t)-2)
			continue; /* there is more of this character */
		if (size == (size_t)-1)
			*key = L'?';
		return 1;
	}
}

bool line_editor_open(void)
{
	HistEvent event;

	history_of_lines = history_init();
	editor = history_of_lines ? el_init("queryprof", stdin, stdout, stderr) : NULL;
	if (!editor) {
		line_editor_close();
		return false;
	}
	history(history_of_lines, &event, H_SETSIZE, HISTORY_LINES);
	history(history_of_lines, &event, H_SETUNIQUE, 1);
	el_set(editor, EL_PROMPT, find_prompt);
	el_set(editor, EL_EDITOR, "emacs");
	el_set(editor, EL_HIST, history, history_of_lines);
	el_set(editor, EL_GETCFN, read_key);
	el_set(editor, EL_SIGNAL, 1); /* another size of the window; stopped and continued */
	el_source(editor, NULL);
	load_history();
	return true;
}

void line_editor_close(void)
{
	if (editor)
		el_end(editor);
	if (history_of_lines)
		history_end(history_of_lines);
	if (history_file)
		fclose(history_file);
	editor = NULL;
	history_of_lines = NULL;
	history_file = NULL;
}

const char *line_editor_read(const char *prompt, bool *interrupted)
{
	struct sigaction before, action = { .sa_handler = note_interrupt };
	sigset_t interrupts, mask;
	int size;

	prompt_now = prompt;
	was_interrupted = 0;
	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupts, &mask);
	mask_while_waiting = mask;
	sigdelset(&mask_while_waiting, SIGINT);
	sigaction(SIGINT, &action, &before);
	/* Before the prompt: Ctrl-D pressed at its sight must not meet the terminal's own
	 * line editing, where it would become a character. */
	el_set(editor, EL_PREP_TERM, 1);
	const char *line = el_gets(editor, &size);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGINT, &before, NULL);
	*interrupted = was_interrupted;
	if (was_interrupted || !line || size <= 0)
		return NULL;
	keep_line(line);
	return line;
}
