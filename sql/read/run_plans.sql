-- SPDX-License-Identifier: Apache-2.0
-- Whether the plan of each run of a statement is known, in a temporary view, and why not: the reason in the file,
-- or the one that follows from its samples and its end. The reason of several runs is the one with
-- the greatest rank. Calls of SQLite that are not statements, such as sqlite3_close(), have no row. For selected.sql
-- and record/plans.sql.
DROP VIEW IF EXISTS temp.run_plans;
DROP VIEW IF EXISTS temp.plan_remedies;

-- What gives a plan that is missing for that reason, one of src/sqlite/plan/missing.h or of those below. Files of former
-- versions have some other reasons.
CREATE TEMP VIEW plan_remedies (reason, remedy) AS VALUES
('the process ended before it made a call in which queryprof could read the plan unnoticed',
 'a longer recording, in which the program prepares, resets or finalizes the statement outside other calls of SQLite'),
('queryprof did not see what the module of a virtual table answered when the statement was prepared, or had no time to use it',
 'recording the program from its start; another preparation of the statement'),
('queryprof could not replace the methods of a virtual table''s module, which may be in allocated memory',
 'a static sqlite3_module; EXPLAIN QUERY PLAN in the program'),
('the statement has a virtual table, and SQLite would report it to the error log once more',
 'an index in place of SQLite''s automatic one, or '' in place of " around a string; EXPLAIN QUERY PLAN in the program'),
('SQLite would not ask the module of a virtual table again what it asked before', 'EXPLAIN QUERY PLAN in the program'),
('the connection has an authorizer', 'a run while the connection has none; queryprof analyze'),
('the connection has a progress handler', 'a run while the connection has none; queryprof analyze'),
('the statement''s program is too large to be read', 'a shorter statement, or fewer triggers; queryprof analyze'),
('the layout of this SQLite''s statements is not known', 'another build of SQLite; queryprof analyze'),
('the connection was closed before the plan could be read', 'another run, before the connection is closed; queryprof analyze'),
('the program could still read an error of the connection', 'a run without an error; queryprof analyze'),
('the statement with EXPLAIN QUERY PLAN is longer than the connection allows', 'a greater SQLITE_LIMIT_SQL_LENGTH; queryprof analyze'),
('SQLite did not prepare the statement again', 'a run while its tables and functions exist; queryprof analyze'),
('after SQLite prepared the statement again, its program differed from the one that ran',
 'literals instead of bound values; queryprof analyze with --param'),
('only sqlite3_trace_v2 reports the statement, and only during its run', 'a SQLite whose functions queryprof can replace; queryprof analyze'),
('no run of it had a sample', 'more runs, or a shorter period with --cpu; queryprof analyze'),
('no run of it ended where queryprof could read the plan', 'a longer recording; queryprof analyze'),
('no run of it has ended', 'the end of a run; queryprof analyze');

CREATE TEMP VIEW run_plans AS
SELECT q.id AS run, q.process, x.normalized_query_hash AS hash, x.query, q.library,
       q.samples_cpu + q.samples_real AS samples, coalesce(execution_ns, query_duration_ns) AS execution_time_ns,
       EXISTS (SELECT 1 FROM programs WHERE id = q.program) AS has_plan,
       -- Queries of other engines cannot have one. A run that has not ended may lack its library.
       q.library OR NOT q.finished OR m.reason IS NOT NULL AS is_sqlites,
       coalesce(m.reason, iif(q.samples_cpu + q.samples_real = 0, 'no run of it had a sample',
                iif(q.finished, 'no run of it ended where queryprof could read the plan', 'no run of it has ended'))) AS reason,
       iif(m.reason IS NOT NULL, 3, iif(q.samples_cpu + q.samples_real = 0, 0, iif(q.finished, 2, 1))) AS rank
FROM queries AS q JOIN statements AS x ON x.id = q.statement LEFT JOIN missing_plans AS m ON m.program = q.program
WHERE x.query NOT GLOB 'sqlite3_*(*)';
