-- SPDX-License-Identifier: Apache-2.0
-- The data of the runs in temp.selected (see select_runs.sql), in two temporary views, and their statements, in
-- temp.selected_statements. Run this after run_plans.sql and select_runs.sql or select_all.sql, and before the files that
-- read these.

-- Of all of them: one row.
CREATE TEMP TABLE selected_limits AS
SELECT max(id = 0) AS is_all, count(*) FILTER (WHERE id <> 0) AS runs, min(first_ns) AS first_ns, max(last_ns) AS last_ns FROM selected;

-- With their texts; for runs that have not ended, as far as known.
CREATE TEMP VIEW selected_runs AS
SELECT queries.*, coalesce(execution_ns, query_duration_ns) AS execution_time_ns,
       coalesce(statements.query, '') AS query,
       coalesce(normalized_query_hash, 0) AS normalized_query_hash
FROM selected CROSS JOIN queries USING (id)
LEFT JOIN statements ON statements.id = queries.statement
WHERE finished OR statement;

-- Columns of selected_runs, for sums of them: the command has these by what a statement reads in a virtual table,
-- temp.summed_runs (src/cmd/file/summed_runs.h). ns: inside SQLite.
CREATE TEMP VIEW run_values AS
SELECT q.statement AS statement, coalesce(x.normalized_query_hash, 0) AS hash, q.program AS program, q.call_stack AS call_stack,
       q.finished AS finished, q.parent <> 0 AS nested, q.samples_cpu + q.samples_real > 0 AS sampled, q.process AS process,
       q.library AS library, q.exception_code AS exception_code, iif(q.exception_code, q.exception, '') AS exception,
       1 AS runs, q.id AS run, q.samples_cpu + q.samples_real AS samples, q.query_start_ns AS first, q.query_start_ns AS newest,
       q.query_start_ns + q.query_duration_ns AS last, coalesce(q.execution_ns, q.query_duration_ns) AS ns,
       coalesce(q.execution_ns, q.query_duration_ns) AS longest, q.cpu_time_ns AS cpu,
       q.query_duration_ns - coalesce(q.execution_ns, q.query_duration_ns) AS outside,
       1.0 * coalesce(q.execution_ns, q.query_duration_ns) * coalesce(q.execution_ns, q.query_duration_ns) AS ns_square,
       1.0 * q.cpu_time_ns * q.cpu_time_ns AS cpu_square, q.worker_cpu_time_ns AS workers, q.result_rows AS rows, q.vm_steps AS vm_steps,
       q.fullscan_steps AS fullscan_steps, q.fullscan_steps AS most_scanned, q.sorts AS sorts, q.autoindexes AS autoindexes,
       q.prepare_time_ns AS prepare, q.lock_wait_ns AS locks, q.io_read_ns AS read_ns, q.io_write_ns AS write_ns, q.io_sync_ns AS sync_ns,
       q.mutex_wait_ns AS mutexes, q.sleep_ns AS sleeps, q.other_wait_ns AS others, q.run_delay_ns AS queue, q.rest_ns AS rest,
       q.samples_dropped AS dropped, q.reads AS reads, q.read_bytes AS read_bytes, q.writes AS writes, q.write_bytes AS write_bytes,
       q.syncs
FROM selected CROSS JOIN queries AS q ON q.id = selected.id LEFT JOIN statements AS x ON x.id = q.statement
WHERE q.finished OR q.statement;

-- The statements among those whose plan is not known, and why (see run_plans.sql).
CREATE TEMP VIEW selected_without_plan AS
SELECT hash, min(query) AS query, ns, reason, is_sqlites
FROM (SELECT hash, query, sum(kinds.ns) OVER (PARTITION BY hash) AS ns, reason, is_sqlites,
             max(has_plan) OVER (PARTITION BY hash) AS has_plan,
             row_number() OVER (PARTITION BY hash ORDER BY rank DESC, reason, kinds.run) AS place
      -- Runs of a kind have one reason.
      FROM (SELECT min(run) AS run, sum(ns) AS ns FROM temp.program_sums GROUP BY program_sums.hash, program, finished, sampled) AS kinds
      CROSS JOIN temp.run_plans AS p ON p.run = kinds.run)
WHERE place = 1 AND NOT has_plan GROUP BY hash;

-- run: of main.queries, 0 if not known (a sample may outlive that row).
CREATE TEMP VIEW selected_samples AS
SELECT timestamp_ns, trace_type, series, thread, coalesce(selected.id, 0) AS run, stack AS stack_id, truncated, weight,
       period_ns, size + weight * period_ns AS value, s.labels AS labels, wait, wait_ns, opcode, s.context AS context, s.span AS span, s.call_stack AS call_stack
FROM samples AS s JOIN series ON series.id = s.series LEFT JOIN selected
  ON selected.id = query AND timestamp_ns BETWEEN first_ns AND last_ns
WHERE trace_type <> 'MemoryFree' AND timestamp_ns BETWEEN (SELECT first_ns FROM selected_limits) AND (SELECT last_ns FROM selected_limits)
  AND (selected.id IS NOT NULL OR EXISTS (SELECT 1 FROM selected WHERE id = 0))
  AND (NOT EXISTS (SELECT 1 FROM selected_labels)
       OR coalesce((SELECT matches FROM selected_labels
                    WHERE labels = (SELECT statements.labels FROM queries JOIN statements ON statements.id = statement
                                    WHERE queries.id = s.query)),
                   (SELECT matches FROM selected_labels WHERE labels = s.labels)));

-- The stacks with code of checkpoints; the CPU time of checkpoints is known where stacks have names. The order of the
-- joins matters: frames have no index by their names.
CREATE TEMP VIEW checkpoint_stacks AS
SELECT DISTINCT s.id AS stack FROM names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
WHERE n.name IN ('walCheckpoint', 'sqlite3WalCheckpoint');

-- The stacks in which a transaction writes pages before its end, because the page cache has no room for them.
CREATE TEMP VIEW spill_stacks AS
SELECT DISTINCT s.id AS stack FROM names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
WHERE n.name IN ('pagerStress', 'sqlite3PcacheFetchStress');

-- A statement with many texts has many programs. Those of the runs with one layout have the same opcodes and nodes, so the
-- newest one represents all.
CREATE TEMP VIEW alike_programs AS
SELECT g.id AS program, iif(layout, max(g.id) OVER (PARTITION BY normalized_query_hash, plan_hash, layout), g.id) AS newest
FROM programs AS g JOIN statements AS x ON x.id = g.statement WHERE g.id IN (SELECT program FROM temp.program_sums);

-- The same for statements that sum up. The command has a virtual table of this name (src/cmd/file/selected_sums.h), with
-- one row for each combination of the keys that a statement reads: the columns before `samples`. It has two columns more:
-- the key shape, of the stack in temp.report_shapes (see report/frames.sql), 0 if there is none, and last_stack, the greatest stack_id.
-- logged: the run is in selected_runs. is_worker: the thread helped the run's own, as those that sort for `PRAGMA threads` do.
-- program: the newest one that is as the run's (alike_programs); own_program: the run's. comment: the label set of the statement's comments. queued: the time in a run queue. node: of the plan, or -1 or -2 as in plan_nodes.sql; phase: the same, but -2 or -3 if the stack shows that. checkpoint, spill: the time of one. spread: the squared value, of a wait the value times the period, of memory what chance adds to it. Memory that was not freed is there again, with the trace_type MemoryLive.
-- stretches: 1 for the first sample of its type, run and thread; changes: 1 if the one before was of another series.
CREATE TEMP VIEW selected_sums AS
SELECT series, trace_type, thread, run, run <> 0 AND (finished OR statement) AS logged, coalesce(normalized_query_hash, 0) AS hash,
       coalesce(a.newest, q.program, 0) AS program, coalesce(q.program, 0) AS own_program, run = 0 OR finished AS finished,
       coalesce(threads.thread_id <> q.thread_id AND worker_cpu_time_ns > 0, 0) AS is_worker, coalesce(x.labels, 0) AS comment,
       s.labels AS labels, stack_id, s.opcode AS opcode,
       coalesce(o.node, iif(prepare_time_ns > 0 AND timestamp_ns < query_start_ns + prepare_time_ns, -2, -1)) AS node,
       coalesce(o.node, iif(prepare_time_ns > 0 AND timestamp_ns < query_start_ns + prepare_time_ns, -2,
                            stackPhase(stack_id)), -1) AS phase, wait,
       wait & 255 = 17 AS queued,
       wait & 255 = 6 OR trace_type = 'CPU' AND stack_id IN (SELECT stack FROM temp.checkpoint_stacks) AS checkpoint,
       trace_type = 'CPU' AND stack_id IN (SELECT stack FROM temp.spill_stacks) AS spill, s.call_stack AS call_stack, 1 AS samples, value, 1.0 * value * value AS square,
       1.0 * value * CASE trace_type WHEN 'OffCPU' THEN period_ns WHEN 'MemorySample' THEN value - value / max(weight, 1) ELSE value END AS spread, wait_ns AS longest,
       lag(series) OVER stretch IS NULL AS stretches, coalesce(lag(series) OVER stretch <> series, 0) AS changes
FROM temp.selected_samples AS s
LEFT JOIN queries AS q ON q.id = run AND run <> 0
LEFT JOIN statements AS x ON x.id = statement
LEFT JOIN threads ON threads.id = thread
LEFT JOIN temp.alike_programs AS a ON a.program = q.program
LEFT JOIN program_opcodes AS o ON o.program = q.program AND o.address = nullif(s.opcode, 0)
WINDOW stretch AS (PARTITION BY trace_type, run, thread ORDER BY timestamp_ns);

-- The types whose values add up to wall time: CPU time and waits, if both were sampled.
CREATE TEMP VIEW wall_types AS
SELECT value AS trace_type
FROM json_each((SELECT iif(max(trace_type = 'OffCPU') AND (max(trace_type = 'CPU') OR NOT max(trace_type = 'Real')),
                           '["CPU","OffCPU"]', '["Real"]') FROM series));

-- The statements, over all programs and databases: their logged runs, and all of their runs as they were counted (see
-- statement_stats), unless single runs are selected (a label does not select single runs). Then times and counters
-- are those of all runs, times are inside SQLite, and `runs` is the number of runs. `runs` is NULL for a statement in
-- "(other)" (hash 0), and in files of older versions, which did not count runs. Times in ns; nested_…: the part that
-- is also in other runs.
CREATE TEMP TABLE selected_statements (
	hash INTEGER PRIMARY KEY, query TEXT, runs INTEGER, logged INTEGER, samples INTEGER, newest INTEGER,
	wall INTEGER, cpu INTEGER, outside INTEGER, nested_wall INTEGER, nested_cpu INTEGER, longest INTEGER,
	wall_square REAL, cpu_square REAL, rows INTEGER, failed INTEGER, vm_steps INTEGER,
	fullscan_steps INTEGER, sorts INTEGER, autoindexes INTEGER, prepares INTEGER, prepare INTEGER);

-- The sums of the runs (run_values): by what most readers need, by program, and by the place that called. There may
-- be more than one row with the same keys.
CREATE TEMP TABLE run_sums (
	hash INTEGER, finished INTEGER, nested INTEGER, process INTEGER, library INTEGER, exception_code INTEGER, exception TEXT,
	runs INTEGER, run INTEGER, samples INTEGER, first INTEGER, newest INTEGER, last INTEGER, ns INTEGER, longest INTEGER, cpu INTEGER,
	outside INTEGER, ns_square REAL, cpu_square REAL, workers INTEGER, rows INTEGER, vm_steps INTEGER, fullscan_steps INTEGER,
	most_scanned INTEGER, sorts INTEGER, autoindexes INTEGER, prepare INTEGER, locks INTEGER, read_ns INTEGER, write_ns INTEGER,
	sync_ns INTEGER, mutexes INTEGER, sleeps INTEGER, others INTEGER, queue INTEGER, rest INTEGER, dropped INTEGER, reads INTEGER,
	read_bytes INTEGER, writes INTEGER, write_bytes INTEGER, syncs INTEGER);

CREATE TEMP TABLE program_sums (
	hash INTEGER, program INTEGER, finished INTEGER, sampled INTEGER, runs INTEGER, run INTEGER, ns INTEGER, rows INTEGER, fullscan_steps INTEGER);

CREATE TEMP TABLE call_sums (hash INTEGER, call_stack INTEGER, runs INTEGER, ns INTEGER);

-- The plans of statements over time: a row for each period in which a statement had one plan on a database, with all
-- runs in it, as statement_parts counts them; otherwise of logged runs with a known plan: a row for each, or one for all if the
-- statement has one plan.
CREATE TEMP TABLE selected_periods (
	hash INTEGER, place TEXT, plan_hash INTEGER, start_ns INTEGER, last_ns INTEGER, runs INTEGER, ns INTEGER);

-- The statements that make up the total, including "(other)". own_…: without the part that other statements also
-- have.
CREATE TEMP VIEW selected_parts AS
SELECT *, coalesce(runs, logged) AS known, wall - is_all * nested_wall AS own_wall, cpu - is_all * nested_cpu AS own_cpu
FROM temp.selected_statements, (SELECT EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) AS is_all)
WHERE runs IS NOT NULL OR NOT EXISTS (SELECT 1 FROM temp.selected_statements WHERE hash = 0);

-- What may change plans: the logged runs of such statements, whatever is selected.
CREATE TEMP VIEW schema_changes AS
SELECT database AS place, query_start_ns AS at_ns, replace(replace(x.query, char(10), ' '), char(13), ' ') AS text
FROM (SELECT id, rtrim(trim(query, char(9, 10, 13, 32)), ';') AS query FROM statements) AS x CROSS JOIN queries ON queries.statement = x.id
WHERE (x.query LIKE 'CREATE INDEX %' OR x.query LIKE 'CREATE UNIQUE INDEX %' OR x.query LIKE 'DROP INDEX %' OR x.query LIKE 'ALTER TABLE %'
       OR x.query LIKE 'REINDEX%' OR x.query LIKE 'ANALYZE%' OR x.query LIKE 'PRAGMA optimize%')
  AND finished AND exception_code = 0;

-- The names of SQLite's error codes, including the extended ones.
CREATE TEMP TABLE error_names (code INTEGER PRIMARY KEY, name TEXT);

INSERT INTO error_names
SELECT column1, 'SQLITE_' || column2 FROM (VALUES
	(1, 'ERROR'), (2, 'INTERNAL'), (3, 'PERM'), (4, 'ABORT'), (5, 'BUSY'), (6, 'LOCKED'), (7, 'NOMEM'), (8, 'READONLY'),
	(9, 'INTERRUPT'), (10, 'IOERR'), (11, 'CORRUPT'), (12, 'NOTFOUND'), (13, 'FULL'), (14, 'CANTOPEN'),
	(15, 'PROTOCOL'), (16, 'EMPTY'), (17, 'SCHEMA'), (18, 'TOOBIG'), (19, 'CONSTRAINT'), (20, 'MISMATCH'),
	(21, 'MISUSE'), (22, 'NOLFS'), (23, 'AUTH'), (24, 'FORMAT'), (25, 'RANGE'), (26, 'NOTADB'),
	(257, 'ERROR_MISSING_COLLSEQ'), (261, 'BUSY_RECOVERY'), (262, 'LOCKED_SHAREDCACHE'), (264, 'READONLY_RECOVERY'),
	(266, 'IOERR_READ'), (267, 'CORRUPT_VTAB'), (270, 'CANTOPEN_NOTEMPDIR'), (275, 'CONSTRAINT_CHECK'),
	(279, 'AUTH_USER'), (513, 'ERROR_RETRY'), (516, 'ABORT_ROLLBACK'), (517, 'BUSY_SNAPSHOT'), (518, 'LOCKED_VTAB'),
	(520, 'READONLY_CANTLOCK'), (522, 'IOERR_SHORT_READ'), (523, 'CORRUPT_SEQUENCE'), (526, 'CANTOPEN_ISDIR'),
	(531, 'CONSTRAINT_COMMITHOOK'), (769, 'ERROR_SNAPSHOT'), (773, 'BUSY_TIMEOUT'), (776, 'READONLY_ROLLBACK'),
	(778, 'IOERR_WRITE'), (779, 'CORRUPT_INDEX'), (782, 'CANTOPEN_FULLPATH'), (787, 'CONSTRAINT_FOREIGNKEY'),
	(1032, 'READONLY_DBMOVED'), (1034, 'IOERR_FSYNC'), (1038, 'CANTOPEN_CONVPATH'), (1043, 'CONSTRAINT_FUNCTION'),
	(1288, 'READONLY_CANTINIT'), (1290, 'IOERR_DIR_FSYNC'), (1294, 'CANTOPEN_DIRTYWAL'), (1299, 'CONSTRAINT_NOTNULL'),
	(1544, 'READONLY_DIRECTORY'), (1546, 'IOERR_TRUNCATE'), (1550, 'CANTOPEN_SYMLINK'), (1555, 'CONSTRAINT_PRIMARYKEY'),
	(1802, 'IOERR_FSTAT'), (1811, 'CONSTRAINT_TRIGGER'), (2058, 'IOERR_UNLOCK'), (2067, 'CONSTRAINT_UNIQUE'),
	(2314, 'IOERR_RDLOCK'), (2323, 'CONSTRAINT_VTAB'), (2570, 'IOERR_DELETE'), (2579, 'CONSTRAINT_ROWID'),
	(2826, 'IOERR_BLOCKED'), (2835, 'CONSTRAINT_PINNED'), (3082, 'IOERR_NOMEM'), (3091, 'CONSTRAINT_DATATYPE'),
	(3338, 'IOERR_ACCESS'), (3594, 'IOERR_CHECKRESERVEDLOCK'), (3850, 'IOERR_LOCK'), (4106, 'IOERR_CLOSE'),
	(4362, 'IOERR_DIR_CLOSE'), (4618, 'IOERR_SHMOPEN'), (4874, 'IOERR_SHMSIZE'), (5130, 'IOERR_SHMLOCK'),
	(5386, 'IOERR_SHMMAP'), (5642, 'IOERR_SEEK'), (5898, 'IOERR_DELETE_NOENT'), (6154, 'IOERR_MMAP'),
	(6410, 'IOERR_GETTEMPPATH'), (6666, 'IOERR_CONVPATH'), (6922, 'IOERR_VNODE'), (7178, 'IOERR_AUTH'),
	(7434, 'IOERR_BEGIN_ATOMIC'), (7690, 'IOERR_COMMIT_ATOMIC'), (7946, 'IOERR_ROLLBACK_ATOMIC'), (8202, 'IOERR_DATA'),
	(8458, 'IOERR_CORRUPTFS'));
