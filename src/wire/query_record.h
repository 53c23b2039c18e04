/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a finished query, and the content of its key.
 */
#pragma once

#include <stdint.h>

#include "wire/record.h"
#include "wire/wait.h"

/* The number of the session that the key was made for, 0: none. */
#define QUERY_SESSION_SHIFT 30
static inline uint32_t query_key_session(struct query_key key)
{
	return (uint32_t)(key.lo >> QUERY_SESSION_SHIFT);
}

/* The key as text: 36 characters and a zero. */
static inline void query_key_text(struct query_key key, char text[37])
{
	static const char digits[] = "0123456789abcdef";
	char *to = text;

	for (int nibble = 0; nibble < 32; nibble++) {
		uint64_t word = nibble < 16 ? key.hi : key.lo;
		if (nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20)
			*to++ = '-';
		*to++ = digits[word >> (60 - nibble % 16 * 4) & 15];
	}
	*to = '\0';
}

/* One finished run of a query. Times in ns. The texts are consecutive in `text`, without
 * terminators, in the order of their lengths. */
struct query_record {
	struct query_key query;
	struct query_key initial; /* the outermost query around it, or itself */
	struct query_key parent;  /* the query right around it; zero: none */
	uint64_t start_realtime_ns;
	uint64_t duration_ns;        /* CLOCK_MONOTONIC, first step to the end */
	uint64_t execution_time_ns;  /* the part of the duration in which a thread was inside its calls */
	uint64_t execution_error_ns; /* its standard error: not all rows of long runs are measured
	                                (query/rows.h) */
	uint64_t cpu_time_ns;        /* the CPU time of that part, see query.h */
	uint64_t prepare_time_ns;    /* the part of the duration before the first step */
	uint64_t worker_cpu_time_ns; /* of threads that SQLite made for the query */
	uint64_t result_rows;
	uint64_t vm_steps, fullscan_steps, sorts, autoindexes, memory_usage;
	uint64_t samples[SAMPLE_QUERY_TYPES]; /* records committed to the ring */
	uint64_t weights[SAMPLE_QUERY_TYPES]; /* their weights added up */
	uint64_t labels[2];                   /* numbers of its label sets, innermost first; 0: none */
	struct trace_context context;
	uint64_t samples_dropped; /* ring full */
	uint64_t samples_truncated;
	uint64_t profiler_cost_ns; /* handlers, the kernel's part of their signals, and watching */
	uint64_t waits[WAIT_SUMS];
	uint64_t worker_wait_ns;       /* of threads that SQLite made for the query */
	uint64_t off_cpu_period_ns;    /* of the samples of its waits, 0: none */
	uint64_t rest_ns;              /* of the execution time: neither CPU time, wait nor run delay */
	struct thread_account account; /* counts during the run; zero if they were not read */
	uint64_t bytecode;             /* see bytecode_record.h; 0: not known */
	int64_t exception_code;        /* 0: finished well */
	uint32_t thread_id;
	uint32_t threads;       /* that worked for it */
	uint32_t flags;         /* enum query_flags */
	uint32_t query_id_size; /* the id that the user set; 0: the key as UUID text */
	uint32_t query_size;
	uint32_t database_size;
	uint32_t exception_size;
	uint32_t library_size;    /* version, a space, path */
	uint32_t call_stack_size; /* wire/call_frame.h */
	uint32_t expanded_size;
	char text[];
};

enum query_flags {
	QUERY_TEXT_CUT = 1, /* the statement's text was longer than a record holds */
};
