/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture's facts about itself: where its functions are and where they stand
 * in their source.
 */
#ifndef QUERYPROF_TESTS_SYMBOL_FIXTURE_H
#define QUERYPROF_TESTS_SYMBOL_FIXTURE_H

struct fixture_function {
	const char *name; /* as in the symbol table */
	const void *start;
	int line; /* of the function's opening brace; 0: not known */
};

#endif
