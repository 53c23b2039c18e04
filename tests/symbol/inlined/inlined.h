/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the library about its inlined functions.
 */
#ifndef QUERYPROF_TESTS_SYMBOL_INLINED_H
#define QUERYPROF_TESTS_SYMBOL_INLINED_H

enum inlined_place {
	INLINED_TWICE,  /* leaf in middle in large */
	INLINED_ONCE,   /* leaf in large */
	INLINED_NOT,    /* large itself */
	INLINED_FAR,    /* a function of another unit, which link-time optimisation inlines */
	INLINED_METHOD, /* C++: a template's method in a function of a namespace */
	INLINED_PLACES,
};

/* Called at each of the places. */
typedef void (*inlined_visitor)(enum inlined_place place);

/* Innermost first; ends with a function of NULL. */
struct inlined_expected {
	const char *function; /* demangled */
	const char *file;     /* without folder */
	int line;
};

#define HIDDEN __attribute__((visibility("hidden")))
#define ALWAYS static inline __attribute__((always_inline))

#ifdef __cplusplus
extern "C" {
#endif

extern HIDDEN volatile int inlined_sink;
HIDDEN void inlined_far(inlined_visitor visit);
HIDDEN extern const int inlined_far_line;
HIDDEN void inlined_run_method(inlined_visitor visit);
HIDDEN extern const struct inlined_expected inlined_method[];

void inlined_run(inlined_visitor visit);
const struct inlined_expected *inlined_expect(enum inlined_place place, int is_linked_as_one);

#ifdef __cplusplus
}
#endif

#endif
