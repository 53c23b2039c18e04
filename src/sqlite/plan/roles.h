/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of SQLite's opcodes on cursors and on the order of execution, as far as plans need it.
 * The names are those of EXPLAIN.
 */
#pragma once

enum role {
	ROLE_NONE = 0,
	ROLE_USES = 1,      /* cursor P1 */
	ROLE_MOVES = 2,     /* cursor P1, for the first time in the code of its node */
	ROLE_REPEATS = 4,   /* the loop over cursor P1 */
	ROLE_STORES = 8,    /* into cursor P1 */
	ROLE_JUMPS = 16,    /* to P2 */
	ROLE_OPENS = 32,    /* cursor P1, for an index made by the statement */
	ROLE_WRITES = 64,   /* opens cursor P1 for writing */
	ROLE_GATHERS = 128, /* opens cursor P1, for a table that the statement fills */
	ROLE_CHECKS = 256,  /* looks, if cursor P1 is written to, for the row that will be there */
};

/* Some of them, ROLE_NONE for an opcode that the plan does not follow. */
unsigned plan_role_of(const char *name);
