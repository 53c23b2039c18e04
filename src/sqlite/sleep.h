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

/* Replaces xSleep in every registered VFS that has the system's own; again for
 * VFSes that came later. Before the first real-time timer is armed. */
void sleep_make_immune(void);

#endif
