/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangled names of C++ and Rust. Also texts that are not mangled names, or that are malicious.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		{ "_RXINvC1a1bFGz_EuEuNvC1c1d", "<() as c::d>" },
		{ "_RNvNvC3PDF10PDFGen_new3run", "PDF::PDFGen_new::run" },
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
	free(symbol_demangle_distinct(deep));
	memset(deep, 'N', sizeof(deep) - 1);
	memcpy(deep, "_R", 2);
	free(symbol_demangle(deep));
}

/* Writes a number as the two schemes do: 0 is empty, and 1 is the first digit. */
static char *write_number(char *to, unsigned number, unsigned base, const char *digits)
{
	if (number > base)
		to = write_number(to, (number - 1) / base, base, digits), number = 1 + (number - 1) % base;
	if (number)
		*to++ = digits[number - 1];
	*to = 0;
	return to;
}

/* A function whose parameters are templates, each with the previous one as both arguments. */
static void write_doubling(char *to, unsigned parameters)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	to += sprintf(to, "_Z1f1aIiiE");
	for (unsigned i = 1; i < parameters; i++) {
		char before[16];

		write_number(before, 2 * i - 1, 36, digits);
		to += sprintf(to, "1bIS%s_S%s_E", before, before);
	}
}

/* The same for Rust, with tuples of two. */
static void write_doubling_rust(char *to, unsigned parameters)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *name = to + 2;
	unsigned last;

	to += sprintf(to, "_RINvC1c1f");
	last = (unsigned)(to - name);
	to += sprintf(to, "TmmE");
	for (unsigned i = 1; i < parameters; i++) {
		char before[16];

		write_number(before, last, 62, digits);
		last = (unsigned)(to - name);
		to += sprintf(to, "TB%s_B%s_E", before, before);
	}
	strcpy(to, "E");
}

/* 200 bytes make a text of 2^18 of the shortest parts, and 1,000 bytes a text of 2^100. */
static void test_doubling(void **state)
{
	static void (*const writers[])(char *to, unsigned parameters) = { write_doubling,
		                                                          write_doubling_rust };
	char name[2000], *text;
	(void)state;
	for (int i = 0; i < 2; i++) {
		writers[i](name, 8);
		text = symbol_demangle_distinct(name);
		assert_true(text && strlen(text) > 256);
		free(text);
		writers[i](name, 18);
		assert_true(strlen(name) < 250);
		assert_null(symbol_demangle_distinct(name));
		assert_null(symbol_demangle(name));
	}
}

/* A huge number of lifetimes in a part that is not shown, and a name longer than any. */
static void test_endless_rust(void **state)
{
	char name[20020] = "_RNvC1a20000";
	(void)state;
	alarm(120); /* for an endless loop */
	assert_null(symbol_demangle("_RXINvC1a1bFGzzzzzzzzz_EuEuNvC1c1d"));
	assert_null(symbol_demangle("_RXINvC1a1bDGzzzzzzzzz_C1eEL_EuNvC1c1d"));
	alarm(0);
	memset(name + strlen(name), 'x', 20000);
	assert_null(symbol_demangle(name));
}

static void test_distinct(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text;
	} cases[] = {
		{ "_ZN3FooC1ERKS_", "Foo::copy_construct(Foo const&)" },
		{ "_ZN3FooC2EOS_", "Foo::move_construct(Foo&&)" },
		{ "_ZN3FooC1ERS_", "Foo::copy_construct(Foo&)" },
		{ "_ZN3FooC1Ei", "Foo::Foo(int)" },
		{ "_ZN3FooC1ERKS_i", "Foo::Foo(Foo const&, int)" },
		{ "_ZN3FooC1ERK3Bar", "Foo::Foo(Bar const&)" },
		{ "_ZN3FooD1Ev", "Foo::~Foo()" },
		{ "_ZN1a1b3FooC2ERKS1_", "a::b::Foo::copy_construct(a::b::Foo const&)" },
		{ "_ZNSt6vectorIiSaIiEEC1EOS1_",
		  "std::vector<int, std::allocator<int> >::move_construct(std::vector<int, "
		  "std::allocator<int> >&&)" },
		{ "_ZNSt6vectorIiSaIiEEC2ERKS1_",
		  "std::vector<int, std::allocator<int> >::copy_construct(std::vector<int, "
		  "std::allocator<int> > const&)" },
		/* Brackets that are operators. */
		{ "_Z1fI3FooENSt9enable_ifIXgtstT_Li4EEvE4typeET_",
		  "std::enable_if<((sizeof (Foo))>(4)), void>::type f<Foo>(Foo)" },
		{ "_ZN3BoxIXgtst3FooLi4EEEC1ERKS1_",
		  "Box<((sizeof (Foo))>(4))>::copy_construct(Box<((sizeof (Foo))>(4))> const&)" },
		{ "sqlite3_step", "" },
		{ "_RNvC7fixture4main", "fixture::main" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = symbol_demangle_distinct(cases[i].name);
		if (strcmp(text ? text : "", cases[i].text) != 0)
			fail_msg("%s: expected %s, seen %s", cases[i].name, cases[i].text, text);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle),
		cmocka_unit_test(test_doubling),
		cmocka_unit_test(test_endless_rust),
		cmocka_unit_test(test_distinct),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
