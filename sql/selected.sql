-- SPDX-License-Identifier: Apache-2.0
-- Which runs of queries a command is about, in temp.selected, and what they left, in
-- two temporary views: run this first, the others read them.
--
-- Parameters, all of which may be left NULL; what is given must all be so:
-- :query_id, :statement (normalized_query_hash, 16 hexadecimal digits), :like (in the
-- text), :since and :until (when the run began, ns since 1970), :min_duration (ns),
-- :failed (not NULL: ended with an error), :database (its file, whole or without
-- folders), :process (number or program), :thread (number or name), :last (of those
-- that are left and have a text, so many of the newest).
DROP VIEW IF EXISTS temp.selected_samples;
DROP VIEW IF EXISTS temp.selected_runs;
DROP TABLE IF EXISTS temp.selected;

-- id: of main.queries. All its samples lie between the two times. Row 0, "no query",
-- is there when no parameter is given: then all samples count.
CREATE TEMP TABLE selected (
	id       INTEGER PRIMARY KEY,
	first_ns INTEGER NOT NULL,
	last_ns  INTEGER NOT NULL
);

INSERT INTO selected
SELECT id, first_ns, last_ns
FROM (
	-- Two, since only one can use the index.
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
  AND (:failed IS NULL OR exception_code <> 0)
  AND (:database IS NULL OR :database IN (database, substr(database, 1 + length(rtrim(database, replace(database, '/', ''))))))
  AND (:process IS NULL OR process IN (
	SELECT id FROM processes
	WHERE :process IN (process_id || '', executable,
	                   substr(executable, 1 + length(rtrim(executable, replace(executable, '/', '')))))))
  AND (:thread IS NULL OR :thread = thread_id || '' OR EXISTS (
	SELECT 1 FROM threads
	WHERE threads.process = runs.process AND threads.thread_id = runs.thread_id AND thread_name = :thread))
  AND (:since IS NULL OR start_ns >= CAST(:since AS INTEGER))
  AND (:until IS NULL OR start_ns < CAST(:until AS INTEGER))
  AND (:last IS NULL OR finished OR statement)
ORDER BY start_ns DESC, id DESC
LIMIT coalesce(CAST(:last AS INTEGER), -1);

INSERT INTO selected
SELECT id, first_ns, last_ns FROM queries
WHERE id = 0 AND coalesce(:query_id, :statement, :like, :since, :until, :min_duration, :failed, :database,
                          :process, :thread, :last) IS NULL;

-- With their texts; those that have not `finished` as far as they are known.
CREATE TEMP VIEW selected_runs AS
SELECT queries.*, coalesce(execution_ns, query_duration_ns) AS execution_time_ns,
       coalesce(statements.query, '') AS query,
       coalesce(normalized_query_hash, 0) AS normalized_query_hash
FROM selected CROSS JOIN queries USING (id)
LEFT JOIN statements ON statements.id = queries.statement
WHERE finished OR statement;

-- run: of main.queries, 0 when it is not known (a sample may outlive that row).
CREATE TEMP VIEW selected_samples AS
SELECT timestamp_ns, trace_type, series, thread, coalesce(selected.id, 0) AS run, stack_id, truncated, weight,
       period_ns, value
FROM sample_values LEFT JOIN selected
  ON selected.id = query AND timestamp_ns BETWEEN first_ns AND last_ns
WHERE timestamp_ns BETWEEN (SELECT min(first_ns) FROM selected) AND (SELECT max(last_ns) FROM selected)
  AND (selected.id IS NOT NULL OR EXISTS (SELECT 1 FROM selected WHERE id = 0));
