/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL functions. All are SQLITE_DIRECTONLY: usable in what the application
 * itself says, not from a view or trigger that a database file brings along. NULL
 * gives NULL. Those up to flameGraph() in the list below, which say something about
 * the program's code, are refused while allow_introspection_functions is 0.
 *
 *   addressToSymbol(address)   the function there, as its symbol table names it, or
 *                              module+0x12 where it names none. NULL: no module.
 *     SELECT demangle(addressToSymbol(trace->>0)) AS symbol, sum(weight) AS n
 *     FROM trace_log GROUP BY symbol ORDER BY n DESC;
 *   addressToLine(address)     file.c:12, or the module where lines are not known
 *     SELECT addressToLine(value) FROM json_each((SELECT trace FROM trace_log));
 *   addressToLineWithInlines(address)   a JSON array of texts: the line in the function
 *                              whose code the address is, then what was inlined there,
 *                              the innermost function first, as file.c:12:function.
 *     SELECT addressToLineWithInlines(trace->>0) ->> 1 FROM trace_log;
 *   buildId(address)           the build id of the program or library that the address
 *                              lies in, in hex; '' when it has none. NULL: no module.
 *   traceToText(trace [, separator])   one frame a line, leaf first; the separator
 *                              takes the place of the line's end, and has at most
 *                              1000 bytes
 *     SELECT traceToText(trace, ' < '), sum(weight) AS n
 *     FROM trace_log GROUP BY stack_id ORDER BY n DESC LIMIT 5;
 *   flameGraph(trace [, weight])   an aggregate: collapsed stacks, as flame graph
 *                              programs read them, a line each: functions from the
 *                              root to the leaf, and the sum of weights (else 1 each).
 *                              NULL where there is no trace, as is a NULL weight's.
 *     SELECT flameGraph(trace, weight) FROM trace_log WHERE trace_type = 'CPU';
 *   demangle(name [, 'distinct'])  as the source has it; the name itself when it is not
 *                              mangled. distinct: copy and move constructors are
 *                              Foo::copy_construct(Foo const&), Foo::move_construct(Foo&&)
 *     SELECT demangle('_ZN5store5drainEi');
 *   set_setting(name, value)   changes a setting, gives the value now in force
 *     SELECT set_setting('query_profiler_cpu_time_period_ns', '1ms');
 *   set_label(key, value)      a label of the connection's queries from the next one on: a
 *                              text or an integer; NULL: none any more. Gives the value
 *     SELECT set_label('tenant', 'acme');
 *   get_setting(name)
 *     SELECT get_setting('trace_log_path');
 *
 * An address is an integer, or a text that reads as one (decimal or 0x…): that of an
 * instruction. Those of a trace are looked up as they stand: a caller's is that of its
 * call, not the one that the call returns to.
 */
#pragma once

#include <stddef.h>

struct session;

/* Needs of the session only its `db` and its settings, and neither hooks nor
 * samples. */
int functions_register(struct session *session, char **error);

/* The names of those that say something of a trace file, each once; NULL past the last. */
const char *functions_name_at(size_t index);

/* SQLite marks the calls in a schema as the schema's when it reads it, of functions that
 * exist at that time. So what the connection has read before, it will read again. Does
 * not read it now: another process may have it locked. */
void functions_guard(struct session *session);
