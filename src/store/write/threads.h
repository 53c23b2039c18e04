/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of processes, threads and series (the samples of one thread, type and period), found or made.
 */
#pragma once

#include "base/hash_table.h"
#include "store/write/prepared.h"
#include "wire/record.h"
#include "wire/thread_record.h"

struct writer;

struct thread_writer {
	int64_t process;                 /* its row, 0: not known */
	struct hash_table known, series; /* by the kernel's number; by row, type and period */
	/* The thread and series of the previous sample. */
	struct {
		uint32_t thread_id;
		uint8_t type;
		uint64_t period_ns;
		uint32_t stretch;
		int64_t series; /* 0: none */
	} last;
	struct {
		struct prepared find_process, add_process;
		struct prepared find, add, newest;
		struct prepared find_series, add_series, touch_series;
	} sql;
};

extern const struct thread_writer thread_writer_new;

/* Forgets the rows. Names remain, because they arrive only once, from the ring. */
void thread_writer_forget(struct thread_writer *threads);

/* Each returns the row's number, > 0, or minus SQLite's code. */
int64_t intern_process(struct writer *writer);
int64_t intern_thread(struct writer *writer, uint32_t thread_id);
/* stretch: periods from one signal to the next. */
int64_t intern_series(struct writer *writer, const struct sample_record *sample, uint32_t stretch);

/* Remembers a thread's name, for its row. */
void intern_thread_name(struct writer *writer, const struct thread_record *record);
