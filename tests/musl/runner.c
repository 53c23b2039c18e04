/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROGRAM ARGUMENT...: runs the program in a child, as a shell does.
 */
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int status;
	pid_t child = count > 1 ? fork() : -1;

	if (!child) {
		execvp(arguments[1], arguments + 1);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
