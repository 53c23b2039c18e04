-- SPDX-License-Identifier: Apache-2.0
-- Selects the runs of queries that a command covers, in temp.selected. This or select_all.sql comes before selected.sql.
--
-- Parameters, which may be NULL. A run is selected if all others are true of it:
-- :query_id, :statement (normalized_query_hash, 16 hexadecimal digits), :like (in the
-- text), :since and :until (when the run began, ns since 1970), :min_duration (ns),
-- :failed (not NULL: ended with an error), :database (its file, whole or without
-- folders), :label (KEY=VALUE), :process (number, program or script), :thread (number or name), :host,
-- :service (the program without its folders), :caller (file:line or file, whole or without folders, or function), :last (of the
-- remaining runs with a text, this number of the newest).

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

-- Last, because sorting all runs would take longer than reading them.
DELETE FROM selected
WHERE :last IS NOT NULL AND id NOT IN (
	SELECT queries.id FROM selected CROSS JOIN queries ON queries.id = selected.id
	ORDER BY iif(query_start_ns, query_start_ns, queries.first_ns) DESC, queries.id DESC
	LIMIT CAST(:last AS INTEGER));

INSERT INTO selected
SELECT id, first_ns, last_ns FROM queries
WHERE id = 0 AND coalesce(:query_id, :statement, :like, :since, :until, :min_duration, :failed, :database,
                          :process, :thread, :last, :label, :host, :service, :caller) IS NULL;
