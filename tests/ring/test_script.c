/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover/script.h finds the script among an interpreter's arguments, and no argument that only looks like a
 * script.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "handover/script.h"

/* Spaces separate the arguments. The expected scripts and data.csv exist. */
static const struct {
	const char *executable, *arguments, *script;
} lines[] = {
	{ "/usr/bin/python3.11", "python3 app.py data.csv", "app.py" },
	{ "/usr/bin/python3", "python3 -u -W data.csv -X dev app.py", "app.py" },
	{ "/usr/bin/python3", "python3 -Wignore -c print() data.csv", "" },
	{ "/usr/bin/python3", "python3 -Bc print() data.csv", "" },
	{ "/usr/bin/python3", "python3 -m http.server data.csv", "" },
	{ "/usr/bin/python3", "python3 missing.py", "" },
	{ "/usr/bin/python3", "python3 -", "" },
	{ "/usr/bin/python3", "python3", "" },
	{ "/usr/bin/python3", "", "" },
	{ "/usr/bin/python3", "python3 -W", "" },
	{ "/usr/bin/pythonic", "pythonic app.py", "" },
	{ "node", "node --require data.csv --perf-basic-prof -r ./data.csv ./app.js", "./app.js" },
	{ "/opt/node-v22/bin/node", "node -e 1 app.js", "" },
	{ "/opt/node-v22/bin/node", "node -pe 1 app.js", "" },
	{ "/usr/bin/ruby3.1", "ruby -Ilib -I data.csv -w app.rb", "app.rb" },
	{ "/usr/bin/perl", "perl -lane print data.csv", "" },
	{ "/usr/bin/perl", "perl -Ilib app.rb", "app.rb" },
	{ "/usr/bin/php8.2", "php -dmemory_limit=1G -d data.csv app.php", "app.php" },
	{ "/usr/bin/php8.2", "php -f app.php", "app.php" },
	{ "/usr/bin/sqlite3", "sqlite3 app.py", "" },
	{ "/usr/bin/env", "env python3 app.py", "" },
};

static void finds_scripts(void **state)
{
	static const char *const files[] = { "app.py", "app.js", "app.rb", "app.php", "data.csv" };
	char folder[] = "/tmp/script.XXXXXX", arguments[128], script[16];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_int_equal(close(open(files[i], O_CREAT | O_WRONLY, 0600)), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		memset(arguments, 0, sizeof(arguments));
		snprintf(arguments, sizeof(arguments), "%s", lines[i].arguments);
		for (char *at = arguments; (at = strchr(at, ' '));)
			*at++ = '\0';
		print_message("%s\n", lines[i].arguments);
		script_find(lines[i].executable, arguments, script, sizeof(script));
		assert_string_equal(script, lines[i].script);
	}
	script_find("python3", "python3\0app.py\0", script, sizeof("app.p")); /* too little room */
	assert_string_equal(script, "");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlink(files[i]);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_scripts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
