/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/script.h"

#include <string.h>
#include <sys/stat.h>

#include "base/task_file.h"
#include "base/text.h"

/* Options whose value is the next argument and may be a file, and options after which there is no
 * script: letters, and words. */
struct interpreter {
	const char *name; /* followed by a version, or nothing */
	const char *values, *code;
	const char *long_values, *long_code;
};

#define NODE_VALUES "--require --import --loader --experimental-loader --env-file --conditions --config"
#define NODE_CODE "--eval --print"

static const struct interpreter interpreters[] = {
	{ "python", "WX", "cm", "--check-hash-based-pycs", "" },
	{ "pypy", "WX", "cm", "", "" },
	{ "node", "rC", "ep", NODE_VALUES, NODE_CODE },
	{ "nodejs", "rC", "ep", NODE_VALUES, NODE_CODE },
	{ "ruby", "rIECWx", "e", "--encoding --external-encoding", "" },
	{ "perl", "IMm", "eE", "", "" },
	{ "php", "cdzt", "rRBEFS", "--php-ini --define --zend-extension --docroot",
	  "--run --process-begin --process-code --process-file --process-end --server" },
};

enum meaning { FLAG, TAKES_NEXT, NO_SCRIPT };

/* As getopt() reads letters. */
static enum meaning read_option(const struct interpreter *interpreter, const char *option)
{
	if (option[1] == '-')
		return text_has_word(interpreter->long_code, option)     ? NO_SCRIPT
		       : text_has_word(interpreter->long_values, option) ? TAKES_NEXT
		                                                         : FLAG;
	for (const char *letter = option + 1; *letter; letter++) {
		if (strchr(interpreter->code, *letter))
			return NO_SCRIPT;
		if (strchr(interpreter->values, *letter))
			return letter[1] ? FLAG : TAKES_NEXT;
	}
	return FLAG;
}

static const struct interpreter *find_interpreter(const char *executable)
{
	const char *slash = strrchr(executable, '/');
	const char *name = slash ? slash + 1 : executable;

	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		size_t length = strlen(interpreters[i].name);
		if (!strncmp(name, interpreters[i].name, length) &&
		    strspn(name + length, "0123456789.-") == strlen(name + length))
			return &interpreters[i];
	}
	return NULL;
}

void script_find(const char *executable, const char *arguments, char *script, size_t size)
{
	const struct interpreter *interpreter = find_interpreter(executable);
	enum meaning meaning = FLAG;
	struct stat status;

	script[0] = '\0';
	for (const char *at = arguments;
	     interpreter && *at && *(at += strlen(at) + 1) && meaning != NO_SCRIPT;) {
		if (meaning == TAKES_NEXT) {
			meaning = FLAG;
		} else if (at[0] == '-' && at[1]) {
			meaning = read_option(interpreter, at);
		} else if (stat(at, &status) == 0 && S_ISREG(status.st_mode) && strlen(at) < size) {
			memcpy(script, at, strlen(at) + 1);
			return;
		}
	}
}

void script_here(const char *executable, char *script, size_t size)
{
	char arguments[1024] = "";

	/* Without malloc(), because it runs in a forked child. A truncated text names no file. */
	task_file_read_process("cmdline", arguments, sizeof(arguments) - 1);
	script_find(executable, arguments, script, size);
}
