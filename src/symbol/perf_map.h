/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a JIT compiler made, from the map that it writes for perf:
 * /tmp/perf-PID.map.
 */
#pragma once

#include <stdint.h>

/* The name that the process `process_id` gave to the code at the address; malloc'ed,
 * NULL when its map has none. The process began at `start_time_ns` (since 1970, as
 * in the trace file's table of processes): an older map is that of an earlier process with
 * the same id. Only a map that belongs to this user is read, and again when it has
 * changed. The newest of several names counts, as compilers move and drop code. Any
 * thread, not in a signal handler. */
char *perf_map_name(int64_t process_id, int64_t start_time_ns, uint64_t address);
