/*
 * Names and lines of the addresses in a trace file, into the file itself: then it can
 * be read where the programs are not, with any SQLite.
 *
 * What the file knows already stays, unless what is found now tells more (lines where
 * there was only a name): so it can be done again at any time, also where some of the
 * programs are gone. A program counts when its build id, or its size and time, are
 * those of the one that was sampled.
 */
#ifndef QUERYPROF_TRACE_EMBED_H
#define QUERYPROF_TRACE_EMBED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash_table.h"

/* How far it is. */
struct embed {
	bool can_wait; /* for debug files from the network; and for looking at all samples
	                * to tell whose an address of generated code is */
	int64_t stack; /* the newest row of the file's stacks that is done */
	int64_t named; /* addresses that got something */
	struct hash_table seen;
	bool has_owners;
};

void embed_begin(struct embed *embed, bool can_wait);

/* Goes on from there for about `budget_ns`, on a connection that can write and has no
 * transaction under way; other writers are kept out only while what was found is
 * stored. An SQLite result: SQLITE_DONE when there are no more stacks for now,
 * SQLITE_OK when there are, otherwise an error; then nothing of this turn was stored. */
int embed_some(struct embed *embed, sqlite3 *db, int64_t budget_ns);

/* For store_config.chore: turns of a few ms, without the network. */
bool embed_chore(sqlite3 *db, int64_t file);

/* `db` as for embed_some(), if there was one. */
void embed_end(struct embed *embed, sqlite3 *db);

#endif
