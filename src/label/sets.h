/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label sets of the process, their trampolines, and their records in the ring.
 *
 * A set is interned: code that makes an equal one gets the same set, which is freed when the last
 * owner releases it. A sample carries the set's number, a hash of its text; the text goes to the ring
 * when the set is made. So a handler, a frame on a stack or a record never depends on the set's
 * memory, and a set can be freed at any moment.
 */
#pragma once

#include <stdint.h>

#include "label/pairs.h"

struct qp_label_set {
	/* Calls function(argument) with the set, see trampolines.S; `around`: the labels that the
	 * thread already had. */
	void (*run)(void *argument, void (*function)(void *), uint64_t number, uint64_t around);
	uint64_t number;
	uint32_t count; /* of its owners; under the lock, like the rest */
	uint32_t trampoline;
	uint64_t from_ns;
	struct qp_label_set *next;
	char text[];
};

#define LABEL_TRAMPOLINES 4096u /* sets that have one at a time; they are numbered from 1 */

/* The set with these labels; NULL: no memory, or no labels. To be freed by label_set_release().
 * `runs`: functions are to be run under it. */
struct qp_label_set *label_set_of(struct label_pairs *pairs, bool runs);
void label_set_release(struct qp_label_set *set);

/* The text of an existing set, malloc'ed; NULL: none. For a number whose record was lost. */
char *label_set_text(uint64_t number);

/* The ring begins: it gets all existing sets. */
void label_sets_publish(void);

enum label_counter {
	LABEL_SETS,         /* that exist */
	LABEL_SETS_WITHOUT, /* made while all trampolines were in use */
	LABEL_COUNTERS,
};
uint64_t label_counter(enum label_counter which);
