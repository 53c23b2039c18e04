/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture's own data: the addresses of its functions and their lines in the source.
 */
#ifndef QUERYPROF_TESTS_SYMBOL_FIXTURE_H
#define QUERYPROF_TESTS_SYMBOL_FIXTURE_H

struct fixture_function {
	const char *name; /* as in the symbol table */
	const void *start;
	int line; /* of the function's opening brace; 0: not known */
};

#endif
