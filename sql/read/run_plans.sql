-- SPDX-License-Identifier: Apache-2.0
-- Whether the plan of each run of a statement is known, in a temporary view, and why not: the reason in the file
-- (known_reason), or the one that follows from its samples and its end. The reason of several runs is the one with
-- the greatest rank. Calls of SQLite that are not statements, such as sqlite3_close(), have no row. For selected.sql
-- and record/plans.sql.
DROP VIEW IF EXISTS temp.run_plans;

CREATE TEMP VIEW run_plans AS
SELECT q.id AS run, q.process, x.normalized_query_hash AS hash, x.query, q.library,
       q.samples_cpu + q.samples_real AS samples, coalesce(execution_ns, query_duration_ns) AS execution_time_ns,
       EXISTS (SELECT 1 FROM programs WHERE id = q.program) AS has_plan, m.reason AS known_reason,
       coalesce(m.reason, iif(q.samples_cpu + q.samples_real = 0, 'no run of it had a sample',
                iif(q.finished, 'no run of it ended where queryprof could read the plan', 'no run of it has ended'))) AS reason,
       iif(m.reason IS NOT NULL, 3, iif(q.samples_cpu + q.samples_real = 0, 0, iif(q.finished, 2, 1))) AS rank
FROM queries AS q JOIN statements AS x ON x.id = q.statement LEFT JOIN missing_plans AS m ON m.program = q.program
WHERE x.query NOT GLOB 'sqlite3_*(*)';
