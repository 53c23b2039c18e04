-- SPDX-License-Identifier: Apache-2.0
-- Selects the runs of queries that a command covers, in temp.selected, their data, in two temporary views, and their
-- statements, in temp.selected_statements. Run this after run_plans.sql and before the files that read these.
--
-- Parameters, all of which may be left NULL; what is given must all be so:
-- :query_id, :statement (normalized_query_hash, 16 hexadecimal digits), :like (in the
-- text), :since and :until (when the run began, ns since 1970), :min_duration (ns),
-- :failed (not NULL: ended with an error), :database (its file, whole or without
-- folders), :label (KEY=VALUE), :process (number, program or script), :thread (number or name), :host,
-- :service (the program without its folders), :caller (file:line or file, whole or without folders, or function), :last (of those that are left and have a text, so many of
-- the newest).
DROP VIEW IF EXISTS temp.wall_types;
DROP VIEW IF EXISTS temp.selected_samples;
DROP VIEW IF EXISTS temp.selected_sums;
DROP VIEW IF EXISTS temp.checkpoint_stacks;
DROP VIEW IF EXISTS temp.schema_changes;
DROP VIEW IF EXISTS temp.selected_without_plan;
DROP VIEW IF EXISTS temp.selected_runs;
DROP TABLE IF EXISTS temp.error_names;
DROP VIEW IF EXISTS temp.selected_parts;
DROP TABLE IF EXISTS temp.selected_periods;
DROP TABLE IF EXISTS temp.selected_counts;
DROP TABLE IF EXISTS temp.selected_failures;
DROP TABLE IF EXISTS temp.selected_statements;
DROP TABLE IF EXISTS temp.selected;
DROP TABLE IF EXISTS temp.selected_labels;

-- id: of main.queries. All its samples are between the two times. Row 0, "no query", is present if no parameter is
-- given; then all samples count.
CREATE TEMP TABLE selected (
	id       INTEGER PRIMARY KEY,
	first_ns INTEGER NOT NULL,
	last_ns  INTEGER NOT NULL
);

-- The label sets with the key of :label, and whether they have its value. If :label is given there is one more row,
-- so the table is empty only without :label. The labels of a statement's comments take precedence.
CREATE TEMP TABLE selected_labels (labels INTEGER PRIMARY KEY, matches INTEGER NOT NULL);
INSERT INTO selected_labels
SELECT labels, value || '' = substr(:label, 1 + instr(:label, '=')) FROM label_values
WHERE key = substr(:label, 1, instr(:label, '=') - 1)
UNION ALL SELECT -1, 0 WHERE :label IS NOT NULL;

INSERT INTO selected
SELECT id, first_ns, last_ns
FROM (
	-- Two, because only one of them can use the index.
	SELECT *, iif(query_start_ns, query_start_ns, first_ns) AS start_ns
	FROM queries WHERE query_id = :query_id AND id <> 0
	UNION ALL
	SELECT *, iif(query_start_ns, query_start_ns, first_ns)
	FROM queries WHERE :query_id IS NULL AND id <> 0) AS runs
WHERE (:like IS NULL OR statement IN (SELECT id FROM statements WHERE query LIKE '%' || :like || '%'))
  AND (:statement IS NULL OR statement IN (
	SELECT id FROM statements WHERE printf('%016x', normalized_query_hash) = :statement))
  AND (:min_duration IS NULL
       OR iif(finished, query_duration_ns, last_ns - first_ns) >= CAST(:min_duration AS INTEGER))
  AND (:label IS NULL
       OR coalesce((SELECT matches FROM statements JOIN selected_labels USING (labels) WHERE statements.id = statement),
                   (SELECT matches FROM selected_labels WHERE labels = runs.labels AND matches), id IN (
			SELECT q.id FROM samples AS s CROSS JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
			WHERE s.labels IN (SELECT labels FROM selected_labels WHERE matches))))
  AND (:failed IS NULL OR exception_code <> 0)
  AND (:database IS NULL OR :database IN (database, fileName(database)))
  AND (:process IS NULL OR process IN (
	SELECT id FROM processes
	WHERE :process IN (process_id || '', executable, nullif(script, ''),
	                   fileName(executable),
	                   fileName(script))))
  AND (:thread IS NULL OR :thread = thread_id || '' OR EXISTS (
	SELECT 1 FROM threads
	WHERE threads.process = runs.process AND threads.thread_id = runs.thread_id AND thread_name = :thread))
  AND (coalesce(:host, :service) IS NULL OR process IN (
	SELECT id FROM processes
	WHERE hostname = coalesce(:host, hostname)
	  AND fileName(executable) = coalesce(:service, fileName(executable))))
  AND (:caller IS NULL OR call_stack IN (
	SELECT id FROM call_stacks
	WHERE :caller = caller_function
	   OR substr('/' || caller, -1 - length(:caller)) = '/' || :caller
	   OR substr('/' || rtrim(caller, '0123456789'), -2 - length(:caller)) = '/' || :caller || ':'))
  AND (:since IS NULL OR start_ns >= CAST(:since AS INTEGER))
  AND (:until IS NULL OR start_ns < CAST(:until AS INTEGER))
  AND (:last IS NULL OR finished OR statement);

-- Only now: sorting all runs would take longer than reading them.
DELETE FROM selected
WHERE :last IS NOT NULL AND id NOT IN (
	SELECT queries.id FROM selected CROSS JOIN queries ON queries.id = selected.id
	ORDER BY iif(query_start_ns, query_start_ns, queries.first_ns) DESC, queries.id DESC
	LIMIT CAST(:last AS INTEGER));

INSERT INTO selected
SELECT id, first_ns, last_ns FROM queries
WHERE id = 0 AND coalesce(:query_id, :statement, :like, :since, :until, :min_duration, :failed, :database,
                          :process, :thread, :last, :label, :host, :service, :caller) IS NULL;

-- With their texts; for runs that have not ended, as far as known.
CREATE TEMP VIEW selected_runs AS
SELECT queries.*, coalesce(execution_ns, query_duration_ns) AS execution_time_ns,
       coalesce(statements.query, '') AS query,
       coalesce(normalized_query_hash, 0) AS normalized_query_hash
FROM selected CROSS JOIN queries USING (id)
LEFT JOIN statements ON statements.id = queries.statement
WHERE finished OR statement;

-- The statements among those whose plan is not known, and why (see run_plans.sql).
CREATE TEMP VIEW selected_without_plan AS
SELECT hash, min(query) AS query, ns, known_reason, reason
FROM (SELECT hash, query, sum(kinds.ns) OVER (PARTITION BY hash) AS ns, known_reason, reason,
             max(has_plan) OVER (PARTITION BY hash) AS has_plan,
             row_number() OVER (PARTITION BY hash ORDER BY rank DESC, reason, kinds.run) AS place
      -- Runs of a kind have one reason.
      FROM (SELECT min(id) AS run, sum(coalesce(execution_ns, query_duration_ns)) AS ns
            FROM temp.selected CROSS JOIN queries USING (id)
            GROUP BY statement, program, finished, samples_cpu + samples_real = 0) AS kinds
      CROSS JOIN temp.run_plans AS p ON p.run = kinds.run)
WHERE place = 1 AND NOT has_plan GROUP BY hash;

-- run: of main.queries, 0 if not known (a sample may outlive that row).
CREATE TEMP VIEW selected_samples AS
SELECT timestamp_ns, trace_type, series, thread, coalesce(selected.id, 0) AS run, stack AS stack_id, truncated, weight,
       period_ns, size + weight * period_ns AS value, s.labels AS labels, wait, wait_ns, opcode, s.context AS context, s.span AS span
FROM samples AS s JOIN series ON series.id = s.series LEFT JOIN selected
  ON selected.id = query AND timestamp_ns BETWEEN first_ns AND last_ns
WHERE timestamp_ns BETWEEN (SELECT min(first_ns) FROM selected) AND (SELECT max(last_ns) FROM selected)
  AND (selected.id IS NOT NULL OR EXISTS (SELECT 1 FROM selected WHERE id = 0))
  AND (NOT EXISTS (SELECT 1 FROM selected_labels)
       OR coalesce((SELECT matches FROM selected_labels
                    WHERE labels = (SELECT statements.labels FROM queries JOIN statements ON statements.id = statement
                                    WHERE queries.id = s.query)),
                   (SELECT matches FROM selected_labels WHERE labels = s.labels)));

-- The stacks with code of checkpoints; the CPU time of checkpoints is known where stacks have names.
CREATE TEMP VIEW checkpoint_stacks AS
SELECT DISTINCT s.id AS stack FROM names AS n JOIN frames AS f ON f.function = n.id JOIN stacks AS s ON instr(s.trace, f.address)
WHERE n.name IN ('walCheckpoint', 'sqlite3WalCheckpoint');

-- The same for statements that sum up: with sum() and, for longest, max(), whatever rows there are. The command
-- has the sums by what a statement reads in a virtual table of this name (src/cmd/file/selected_sums.h), which is faster.
-- logged: the run is in selected_runs. is_worker: the thread helped the run's own, as those that sort for `PRAGMA threads` do.
-- comment: the label set of the statement's comments. node: of the plan, or -1 or -2 as in plan_nodes.sql; phase: the same, but -2 or -3 if the stack shows that. checkpoint: the time of one. spread: the squared value, of a wait the value times the period.
-- stretches: 1 for the first sample of its type, run and thread; changes: 1 if the one before was of another series.
CREATE TEMP VIEW selected_sums AS
SELECT series, trace_type, thread, run, run <> 0 AND (finished OR statement) AS logged, coalesce(normalized_query_hash, 0) AS hash,
       coalesce(q.program, 0) AS program, run = 0 OR finished AS finished,
       coalesce(threads.thread_id <> q.thread_id AND worker_cpu_time_ns > 0, 0) AS is_worker, coalesce(x.labels, 0) AS comment,
       s.labels AS labels, stack_id,
       coalesce(o.node, iif(prepare_time_ns > 0 AND timestamp_ns < query_start_ns + prepare_time_ns, -2, -1)) AS node,
       coalesce(o.node, iif(prepare_time_ns > 0 AND timestamp_ns < query_start_ns + prepare_time_ns, -2,
                            (SELECT stackPhase(trace) FROM stacks WHERE stacks.id = stack_id)), -1) AS phase, wait,
       wait & 255 = 6 OR trace_type = 'CPU' AND stack_id IN (SELECT stack FROM temp.checkpoint_stacks) AS checkpoint, 1 AS samples, value, 1.0 * value * value AS square,
       1.0 * value * iif(trace_type = 'OffCPU', period_ns, value) AS spread, wait_ns AS longest,
       lag(series) OVER stretch IS NULL AS stretches, coalesce(lag(series) OVER stretch <> series, 0) AS changes
FROM temp.selected_samples AS s
LEFT JOIN queries AS q ON q.id = run AND run <> 0
LEFT JOIN statements AS x ON x.id = statement
LEFT JOIN threads ON threads.id = thread
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

-- By row of `statements` first: sorting all runs with their texts would take longer than all else.
INSERT INTO selected_statements
SELECT coalesce(normalized_query_hash, 0) AS hash, min(coalesce(query, '')), NULL, sum(r.logged), sum(samples), max(newest), sum(wall),
       sum(cpu), sum(outside), sum(nested_wall), sum(nested_cpu), max(longest), sum(wall_square), sum(cpu_square), sum(r.rows),
       sum(failed), sum(vm_steps), sum(fullscan_steps), sum(sorts), sum(autoindexes), NULL, sum(prepare)
FROM (SELECT statement, count(*) FILTER (WHERE finished) AS logged, sum(samples_cpu + samples_real) AS samples,
             max(query_start_ns) AS newest, sum(ns) FILTER (WHERE finished) AS wall, sum(cpu_time_ns) FILTER (WHERE finished) AS cpu,
             sum(query_duration_ns - ns) FILTER (WHERE finished) AS outside,
             sum(iif(parent, ns, 0)) FILTER (WHERE finished) AS nested_wall,
             sum(iif(parent, cpu_time_ns, 0)) FILTER (WHERE finished) AS nested_cpu, max(ns) FILTER (WHERE finished) AS longest,
             sum(1.0 * ns * ns) FILTER (WHERE finished) AS wall_square,
             sum(1.0 * cpu_time_ns * cpu_time_ns) FILTER (WHERE finished) AS cpu_square,
             sum(result_rows) FILTER (WHERE finished) AS rows, sum(exception_code <> 0) AS failed, sum(vm_steps) AS vm_steps,
             sum(fullscan_steps) AS fullscan_steps, sum(sorts) AS sorts, sum(autoindexes) AS autoindexes,
             sum(prepare_time_ns) FILTER (WHERE finished) AS prepare
      FROM (SELECT *, coalesce(execution_ns, query_duration_ns) AS ns FROM selected CROSS JOIN queries USING (id))
      WHERE finished OR statement
      GROUP BY statement) AS r LEFT JOIN statements ON statements.id = r.statement
GROUP BY 1;

-- Their counters. With :label these are the runs with that label in a comment (see statement_parts), if all of the
-- statement's runs were counted by labels and the program itself sets the label in none. Values that are not counted
-- by labels are then NULL, unless all runs have the label. The spread of times is assumed to be the same for each
-- label.
INSERT INTO selected_statements
WITH whole AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, min(query) AS query, sum(calls) AS calls, max(last_seen_ns) AS newest,
	       sum(execution_time_ns) AS wall, sum(cpu_time_ns) AS cpu, sum(duration_ns - execution_time_ns) AS outside,
	       sum(nested_time_ns) AS nested_wall, sum(nested_cpu_time_ns) AS nested_cpu, max(max_ns) AS longest,
	       sum(execution_time_square) AS wall_square, sum(cpu_time_square) AS cpu_square, sum(rows) AS rows,
	       sum(errors) AS failed, sum(vm_steps) AS vm_steps, sum(fullscan_steps) AS fullscan_steps,
	       sum(sorts) AS sorts, sum(autoindexes) AS autoindexes, sum(prepares) AS prepares,
	       sum(prepare_time_ns) AS prepare
	FROM statement_stats
	WHERE coalesce(:query_id, :since, :until, :min_duration, :failed, :process, :thread, :last, :host, :service, :caller) IS NULL
	  AND (:statement IS NULL OR printf('%016x', normalized_query_hash) = :statement)
	  AND (:database IS NULL OR :database IN (database, fileName(database)))
	  AND (:like IS NULL OR normalized_query_hash IN (
		-- all of its texts; otherwise :like matches literals, which counters do not distinguish
		SELECT normalized_query_hash FROM statements GROUP BY 1 HAVING min(query LIKE '%' || :like || '%')))
	GROUP BY normalized_query_hash
	-- A statement that was only prepared does not count.
	HAVING sum(calls) > 0 OR normalized_query_hash IN (SELECT hash FROM temp.selected_statements)),
matching AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, labels IN (SELECT labels FROM temp.selected_labels WHERE matches) AS matches, *
	FROM statement_parts
	WHERE :label IS NOT NULL
	  AND (:database IS NULL OR :database IN (database, fileName(database)))),
parts AS MATERIALIZED (
	SELECT hash, sum(calls) AS all_calls, sum(calls) FILTER (WHERE matches) AS calls, max(last_seen_ns) FILTER (WHERE matches) AS newest,
	       sum(execution_time_ns) FILTER (WHERE matches) AS wall, sum(cpu_time_ns) FILTER (WHERE matches) AS cpu,
	       sum(duration_ns - execution_time_ns) FILTER (WHERE matches) AS outside,
	       sum(nested_time_ns) FILTER (WHERE matches) AS nested_wall, sum(nested_cpu_time_ns) FILTER (WHERE matches) AS nested_cpu,
	       max(max_ns) FILTER (WHERE matches) AS longest, sum(rows) FILTER (WHERE matches) AS rows,
	       sum(errors) FILTER (WHERE matches) AS failed
	FROM matching GROUP BY 1)
SELECT hash, query, calls, 0, 0, newest, wall, cpu, outside, nested_wall, nested_cpu, longest, wall_square, cpu_square, rows,
       failed, vm_steps, fullscan_steps, sorts, autoindexes, prepares, prepare
FROM whole WHERE :label IS NULL
UNION ALL
SELECT w.hash, w.query, p.calls, 0, 0, p.newest, p.wall, p.cpu, p.outside, p.nested_wall, p.nested_cpu, p.longest,
       1.0 * p.calls / w.calls * (w.wall_square - 1.0 * w.wall * w.wall / w.calls) + 1.0 * p.wall * p.wall / p.calls,
       1.0 * p.calls / w.calls * (w.cpu_square - 1.0 * w.cpu * w.cpu / w.calls) + 1.0 * p.cpu * p.cpu / p.calls, p.rows,
       p.failed, iif(p.calls = w.calls, vm_steps, NULL), iif(p.calls = w.calls, fullscan_steps, NULL),
       iif(p.calls = w.calls, sorts, NULL), iif(p.calls = w.calls, autoindexes, NULL), iif(p.calls = w.calls, prepares, NULL),
       iif(p.calls = w.calls, prepare, NULL)
FROM whole AS w JOIN parts AS p USING (hash)
WHERE :label IS NOT NULL AND p.calls > 0 AND p.all_calls = w.calls AND w.hash NOT IN (
	SELECT r.normalized_query_hash FROM temp.selected_runs AS r JOIN statements AS s ON s.id = r.statement
	WHERE s.labels NOT IN (SELECT labels FROM temp.selected_labels WHERE matches))
ON CONFLICT (hash) DO UPDATE SET
	(runs, newest, wall, cpu, outside, nested_wall, nested_cpu, longest, wall_square, cpu_square, rows, failed, vm_steps,
	 fullscan_steps, sorts, autoindexes, prepares, prepare) =
	(excluded.runs, excluded.newest, excluded.wall, excluded.cpu, excluded.outside, excluded.nested_wall, excluded.nested_cpu,
	 excluded.longest, excluded.wall_square, excluded.cpu_square, excluded.rows, excluded.failed,
	 excluded.vm_steps, excluded.fullscan_steps, excluded.sorts, excluded.autoindexes, excluded.prepares,
	 excluded.prepare);

-- With :failed, how many of all runs of each statement failed, if no other option selects some of them.
CREATE TEMP TABLE selected_failures AS
SELECT normalized_query_hash AS hash, sum(errors) AS failed FROM statement_stats
WHERE :failed IS NOT NULL
  AND coalesce(:query_id, :since, :until, :min_duration, :database, :process, :thread, :last, :label, :host, :service, :caller) IS NULL
  AND (:like IS NULL OR normalized_query_hash IN (
	SELECT normalized_query_hash FROM statements GROUP BY 1 HAVING min(query LIKE '%' || :like || '%')))
GROUP BY 1;

-- The statements that make up the total, including "(other)". own_…: without the part that other statements also
-- have.
CREATE TEMP VIEW selected_parts AS
SELECT *, coalesce(runs, logged) AS known, wall - is_all * nested_wall AS own_wall, cpu - is_all * nested_cpu AS own_cpu
FROM temp.selected_statements, (SELECT EXISTS (SELECT 1 FROM temp.selected WHERE id = 0) AS is_all)
WHERE runs IS NOT NULL OR NOT EXISTS (SELECT 1 FROM temp.selected_statements WHERE hash = 0);

-- The rows of statement_parts of those statements that have all runs counted.
CREATE TEMP TABLE selected_counts AS
SELECT * FROM statement_parts
WHERE normalized_query_hash IN (SELECT hash FROM temp.selected_statements WHERE runs IS NOT NULL)
  AND (:label IS NULL OR labels IN (SELECT labels FROM temp.selected_labels WHERE matches))
  AND (:database IS NULL OR :database IN (database, fileName(database)));

-- What may change plans: the logged runs of such statements, whatever is selected.
CREATE TEMP VIEW schema_changes AS
SELECT database AS place, query_start_ns AS at_ns, replace(replace(x.query, char(10), ' '), char(13), ' ') AS text
FROM (SELECT id, rtrim(trim(query, char(9, 10, 13, 32)), ';') AS query FROM statements) AS x CROSS JOIN queries ON queries.statement = x.id
WHERE (x.query LIKE 'CREATE INDEX %' OR x.query LIKE 'CREATE UNIQUE INDEX %' OR x.query LIKE 'DROP INDEX %' OR x.query LIKE 'ALTER TABLE %'
       OR x.query LIKE 'REINDEX%' OR x.query LIKE 'ANALYZE%' OR x.query LIKE 'PRAGMA optimize%')
  AND finished AND exception_code = 0;

-- The plans of statements over time: a row for each period in which a statement had one plan on a database, with all
-- runs in it, as statement_parts counts them; otherwise a row for each logged run with a known plan.
CREATE TEMP TABLE selected_periods (
	hash INTEGER, place TEXT, plan_hash INTEGER, start_ns INTEGER, last_ns INTEGER, runs INTEGER, ns INTEGER);

INSERT INTO selected_periods
SELECT p.normalized_query_hash, p.database, g.plan_hash, p.first_seen_ns, p.last_seen_ns, p.calls, p.execution_time_ns
FROM temp.selected_counts AS p
JOIN (SELECT normalized_query_hash, layout, max(plan_hash) AS plan_hash
      FROM programs JOIN statements ON statements.id = programs.statement WHERE layout GROUP BY 1, 2) AS g
  ON g.normalized_query_hash = p.normalized_query_hash AND g.layout = p.layout
WHERE p.calls > 0;

INSERT INTO selected_periods
SELECT normalized_query_hash, database, g.plan_hash, query_start_ns, query_start_ns, 1, execution_time_ns
FROM temp.selected_runs JOIN programs AS g ON g.id = program
WHERE finished AND (normalized_query_hash, g.plan_hash) NOT IN (SELECT hash, plan_hash FROM temp.selected_periods);

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
