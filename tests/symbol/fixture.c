/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the symbol tests know. `volatile` keeps them from being merged.
 */
#include "fixture.h"

#include <stddef.h>
#include <unistd.h>

int fixture_global(int value);
int fixture_calls_out(void);
int fixture_twin(int value) __attribute__((weak, alias("fixture_global")));
int __fixture_global(int value) __attribute__((alias("fixture_global")));
int fixture_visit(int (*visit)(int), int value);
const struct fixture_function *fixture_functions(void);

static volatile int sink;

int fixture_global(int value)
{
	sink += value;
	return sink;
}
enum { GLOBAL_LINE = __LINE__ - 4 };

static int fixture_static(int value)
{
	sink -= value;
	return sink;
}
enum { STATIC_LINE = __LINE__ - 4 };

/* Gives the library a stub for a function of another library. */
int fixture_calls_out(void)
{
	return (int)getppid() + fixture_visit(fixture_static, 1);
}
enum { CALLS_LINE = __LINE__ - 3 };

int fixture_visit(int (*visit)(int), int value)
{
	return visit(value);
}

extern const char fixture_sized[], fixture_hole[], fixture_unsized[], fixture_label_user[];

/* A class method and Rust's two manglings, see fixture_cxx.cpp and fixture_code.S. */
extern const char _ZN7fixture5Thing4walkEPKci[];
extern const char _RNvC7fixture4main[];
extern const char _ZN7fixture4work17h0123456789abcdefE[];

const struct fixture_function *fixture_functions(void)
{
	static const struct fixture_function functions[] = {
		{ "fixture_global", (const void *)fixture_global, GLOBAL_LINE },
		{ "fixture_static", (const void *)fixture_static, STATIC_LINE },
		{ "fixture_calls_out", (const void *)fixture_calls_out, CALLS_LINE },
		{ "fixture_sized", fixture_sized, 0 },
		{ "fixture_unsized", fixture_unsized, 0 },
		{ "fixture_label_user", fixture_label_user, 0 },
		{ "_RNvC7fixture4main", _RNvC7fixture4main, 0 },
		{ "_ZN7fixture4work17h0123456789abcdefE", _ZN7fixture4work17h0123456789abcdefE, 0 },
		{ "_ZN7fixture5Thing4walkEPKci", _ZN7fixture5Thing4walkEPKci, 0 },
		{ NULL, NULL, 0 },
	};
	return functions;
}
