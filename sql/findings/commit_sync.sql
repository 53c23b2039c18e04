-- SPDX-License-Identifier: Apache-2.0
-- Many transactions that each wait for the disk.
WITH alone AS MATERIALIZED ( -- long transactions of one statement, which SQLite committed itself
	SELECT x.normalized_query_hash AS hash, count(*) AS transactions
	FROM transactions AS t JOIN temp.selected AS s ON s.id = t.first JOIN queries AS q ON q.id = t.first JOIN statements AS x ON x.id = q.statement
	WHERE t.first <> 0 AND t.statements = 1 AND t.outcome = 1 GROUP BY 1),
-- Statements whose runs nearly all sync; the logged ones are at least half of all. If no connection wrote pages early, only the end of a transaction syncs, so each run
-- ended one, even if a cursor of another statement kept a lock.
syncing AS MATERIALIZED (
	SELECT r.normalized_query_hash AS hash FROM temp.selected_runs AS r JOIN temp.finding_statements AS f ON f.hash = r.normalized_query_hash
	WHERE finished AND (SELECT max(spills) FROM connection_counts) = 0
	GROUP BY 1 HAVING count(*) >= 10 AND count(*) >= 0.5 * max(f.runs) AND sum(r.syncs > 0) >= 0.9 * count(*)),
ended AS (
	SELECT *, runs - coalesce(failed, 0) AS commits FROM temp.finding_statements
	-- Closing a connection writes the WAL back, which is not the end of a transaction.
	WHERE query NOT LIKE 'sqlite3\_%' ESCAPE '\'),
frequent AS MATERIALIZED (
	SELECT hash, syncs, commits, wall, printf('%,d runs', commits) AS runs
	FROM ended AS e WHERE commits >= 20 AND syncs >= 0.3 * wall
	  -- A statement inside a transaction syncs, too, if it does not fit into the cache.
	  AND (query LIKE 'COMMIT%' OR query LIKE 'END%'
	       OR NOT EXISTS (SELECT 1 FROM temp.finding_statements WHERE query LIKE 'COMMIT%' OR query LIKE 'END%' OR query LIKE 'RELEASE%')
	       OR (SELECT transactions FROM alone WHERE alone.hash = e.hash) >= 10 OR hash IN (SELECT hash FROM syncing))
	  -- The first transaction of a new connection may start a new WAL and sync it. That is the cost of connecting, not of the commit.
	  AND NOT (hash IN (SELECT hash FROM temp.finding_reconnected) AND EXISTS (SELECT 1 FROM temp.finding_connections) AND EXISTS (SELECT 1 FROM wal_events))),
-- Few runs of each of many statements, such as CREATE TABLE, or INSERT with names in its text.
seldom AS MATERIALIZED (
	SELECT e.hash AS hash, max(syncs), sum(syncs) AS syncs, sum(commits) AS commits, sum(wall) AS wall, count(*) AS statements
	FROM ended AS e JOIN alone USING (hash) WHERE commits < 20 AND syncs >= 0.3 * wall AND transactions >= 0.5 * commits) -- short ones are not logged
SELECT hash, syncs * (1 - 1.0 / commits) AS saved, NULL AS error, runs, duration(syncs) AS took, duration(1.0 * syncs / commits) AS each,
       printf('%.0f', 100.0 * syncs / wall) AS share,
       'BEGIN and COMMIT around many statements; or ' || iif((SELECT count(*) FROM wal_events), '', 'PRAGMA journal_mode = WAL with ')
       || 'PRAGMA synchronous = NORMAL, if a power failure may lose the newest transactions' AS cure
FROM (SELECT * FROM frequent
      UNION ALL
      SELECT hash, syncs, commits, wall, printf('%,d runs of %,d statements, of which this one waited longest,', commits, statements) FROM seldom WHERE commits >= 50);
