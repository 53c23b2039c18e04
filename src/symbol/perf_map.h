/*
 * Names of code that a JIT compiler made, from the map that it writes for perf:
 * /tmp/perf-PID.map.
 */
#ifndef QUERYPROF_SYMBOL_PERF_MAP_H
#define QUERYPROF_SYMBOL_PERF_MAP_H

#include <stdint.h>

/* The name that the process `process_id` gave to the code at the address; malloc'ed,
 * NULL when its map names none. The process began at `start_time_ns` (since 1970, as
 * in the trace file's table of processes): an older map is that of another one which
 * had the same id. Only a map that belongs to us is read, and it is read again when
 * it has changed; of several names the newest counts, as code may be moved and
 * dropped. Any thread, not in a signal handler. */
char *perf_map_name(int64_t process_id, int64_t start_time_ns, uint64_t address);

#endif
