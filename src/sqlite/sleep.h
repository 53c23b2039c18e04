/*
 * Keeps SQLite's sleeps as long as they were asked for while signals come in.
 *
 * An interrupted nanosleep returns early, and SQLite's default busy handler counts
 * its sleeps, not the time: under a 1 ms timer, busy_timeout(5000) gives up after
 * 59 ms. So the xSleep of the host's VFSes is replaced by one that sleeps to an
 * absolute deadline. This changes nothing else, for open connections as for new
 * ones.
 */
#ifndef QUERYPROF_SQLITE_SLEEP_H
#define QUERYPROF_SQLITE_SLEEP_H

/* The sampler calls it before the first real-time timer of the process is armed. */
void sleep_before_real_time(void);

/* A connection was attached: the library that it belongs to may be new to us, or
 * have new VFSes, while real-time timers are in use already. */
void sleep_after_attach(void);

#endif
