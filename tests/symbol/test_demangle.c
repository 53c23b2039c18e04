/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people wrote them, of C++ and Rust; and names that are none, or mean harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/symbol.h"

static void test_demangle(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text;
	} cases[] = {
		{ "_ZN7fixture5Thing4walkEPKci", "fixture::Thing::walk(char const*, int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_RNvC7fixture4main", "fixture::main" },
		{ "_ZN7fixture4work17h0123456789abcdefE", "fixture::work" },
		{ "sqlite3_step", NULL },
		{ "", NULL },
		{ "_Z", NULL },
		{ "_R", NULL },
		{ "_ZN", NULL },
		{ "__libc_start_main", NULL },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = symbol_demangle(cases[i].name);
		if (!text != !cases[i].text || (text && strcmp(text, cases[i].text) != 0))
			fail_msg("%s: expected %s, seen %s", cases[i].name, cases[i].text, text);
		free(text);
	}
	/* Names made to exhaust the demangler's stack. */
	char deep[60000];
	memset(deep, 'P', sizeof(deep));
	memcpy(deep, "_Z1f", 4);
	deep[sizeof(deep) - 1] = 0;
	free(symbol_demangle(deep));
	memset(deep, 'N', sizeof(deep) - 1);
	memcpy(deep, "_R", 2);
	free(symbol_demangle(deep));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
