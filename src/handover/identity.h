/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the trace file identifies a process: a row of its table of processes.
 */
#pragma once

#include <stdint.h>

struct writer_identity {
	char hostname[65];
	char executable[256];
	char script[256]; /* that the executable, an interpreter, runs; "" not known */
	int64_t process_id;
	int64_t start_time_ns; /* since 1970 */
};

/* This process. One thread at a time. */
const struct writer_identity *writer_identity_here(void);
