/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how often each loop of a run's plan began and how many rows it had, of a library that counts them
 * (SQLITE_ENABLE_STMT_SCANSTATUS). It counts over all runs of a statement, so both ends of a run are read.
 * Another library costs nothing: its runs do not come here.
 */
#pragma once

#include "sqlite/opcode/locations.h"
#include "sqlite/runs/runs.h"

/* The run's statement begins. */
void scan_counts_begin(struct run *run);

/* And has ended; the statement exists. `is_anew`: SQLite prepared it again in this run, and its
 * counts began at 0. `is_done`: it found all its rows; otherwise they are not compared with estimates. */
void scan_counts_publish(const struct run *run, uint64_t bytecode, bool is_anew, bool is_done);

/* The rows that the statement's Bloom filters let pass, of those that were looked up in them, if it has any:
 * the mean of its runs since it was prepared, because SQLite counts over all of them and any build does. The
 * run has ended; the statement exists. */
void filter_counts_publish(const struct run *run, uint64_t bytecode);
