/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what becomes of every signal that reaches the handler, and of every sample.
 */
#ifndef QUERYPROF_HANDLER_LEDGER_H
#define QUERYPROF_HANDLER_LEDGER_H

/* In the end signals + taken = stored + dropped + idle + stacks + late + foreign +
 * reentered. */
enum ledger_counter {
	LEDGER_SIGNALS,
	LEDGER_TAKEN,     /* samples that ordinary code took, see sampler_take() */
	LEDGER_STORED,    /* committed to the ring */
	LEDGER_DROPPED,   /* the ring was full */
	LEDGER_IDLE,      /* no query ran on the thread, or no period had ended yet */
	LEDGER_STACKS,    /* requests for a live stack that got a response */
	LEDGER_LATE,      /* of a timer that the thread no longer has, or of an old request */
	LEDGER_FOREIGN,   /* not ours: forwarded to the handler that was there */
	LEDGER_REENTERED, /* arrived inside the handler */
	LEDGER_OVERRUNS,  /* periods on top of a stored sample's first */
	LEDGER_TRUNCATED, /* stored samples whose trace is truncated */
	LEDGER_NO_OPCODE, /* samples in SQLite's interpreter that are at no opcode, see opcode.h */
	LEDGER_SHARED,    /* stored samples that a shared timer took, see sampler/shared_timer.h */
	LEDGER_COST_NS,   /* what the handler's samples took */
	LEDGER_CPU_NS,    /* CPU time of queries, as samples tell it */
	LEDGER_COUNTERS,
};

#endif
