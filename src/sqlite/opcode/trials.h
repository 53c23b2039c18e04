/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements with which a SQLite library is tried, see locations.h.
 */
#pragma once

/* The kinds of trial statements. */
enum trial_kind {
	TRIAL_MAIN,    /* the statement's own bytecode calls queryprof's function */
	TRIAL_TRIGGER, /* by a trigger's, */
	TRIAL_NESTED,  /* by one that a trigger fires */
};

struct trial {
	enum trial_kind kind;
	const char *opcodes; /* that call us, of which the bytecode has one */
	const char *sql;
};

extern const char opcode_schema[];         /* of the private connection */
extern const struct trial opcode_trials[]; /* the last has no `sql` */
