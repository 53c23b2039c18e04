-- SPDX-License-Identifier: Apache-2.0
-- Statements that read the same pages again, in all more than twice the file, because the page cache of their connection
-- is much smaller than the file, or because other connections commit: the next read of a connection empties its cache if
-- another one has changed the file. VACUUM is left out, because it reads its copy of the database, too. saved: the time of
-- repeated reads, by samples for CPU time. There is no finding without the names of functions, or if the reads take less
-- than a fifth of the statement's CPU time.
WITH newest AS (
	SELECT process, session, database, hits, misses, cache_bytes, max(timestamp_ns), database_bytes AS file
	FROM connection_counts GROUP BY process, session),
candidates AS MATERIALIZED (
	SELECT * FROM newest
	WHERE cache_bytes < 0.5 * file
	   OR database IN (SELECT database FROM wal_events WHERE event = 0 GROUP BY 1 HAVING count(DISTINCT session) > 1)),
logged AS MATERIALIZED (
	SELECT r.normalized_query_hash AS hash, c.process AS process, c.session AS session, c.database AS database, count(*) AS runs,
	       min(query_start_ns) AS first_ns, max(query_start_ns) AS last_ns,
	       sum(reads) AS reads, sum(read_bytes) AS bytes, sum(io_read_ns) AS waited, max(read_bytes) AS most, file, cache_bytes, hits, misses
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM candidates)) CROSS JOIN temp.selected_runs AS r
	JOIN candidates AS c ON c.process = r.process AND c.session = r.session
	WHERE r.normalized_query_hash IN (SELECT hash FROM temp.finding_statements WHERE query NOT LIKE 'VACUUM%')
	GROUP BY 1, 2, 3),
-- The pages that all runs of one process read, also the short ones, unless an option selects runs. A process with several
-- connections reads a page once for each of them.
pages AS MATERIALIZED (
	SELECT p.statement AS hash, sum(p.reads) AS reads, sum(p.read_bytes + p.wal_read_bytes) AS bytes
	FROM page_sums AS p JOIN temp.finding_statements AS f ON f.hash = p.statement
	WHERE f.runs IS NOT NULL AND p.process IN (
		SELECT process FROM newest GROUP BY process HAVING count(*) = 1 AND process IN (SELECT process FROM candidates))
	GROUP BY 1),
reading AS MATERIALIZED (
	SELECT l.hash AS hash, runs, max(coalesce(p.reads, 0), l.reads) AS reads, max(coalesce(p.bytes, 0), l.bytes) AS bytes, waited, file, cache_bytes, hits, misses
	FROM (SELECT hash, sum(runs) AS runs, sum(reads) AS reads, sum(bytes) AS bytes, sum(waited) AS waited, max(most), file, cache_bytes, hits, misses
	      FROM logged GROUP BY 1) AS l LEFT JOIN pages AS p ON p.hash = l.hash
	WHERE max(coalesce(p.bytes, 0), l.bytes) > 2 * file),
-- The commits of other connections, during the runs of each connection.
emptied AS MATERIALIZED (
	SELECT l.hash AS hash, sum(w.transactions) AS commits
	FROM reading AS r JOIN logged AS l ON l.hash = r.hash
	JOIN wal_events AS w ON w.database = l.database AND w.event = 0 AND w.start_ns BETWEEN l.first_ns AND l.last_ns AND w.session <> l.session
	GROUP BY 1),
stacks_that_read AS MATERIALIZED (
	SELECT DISTINCT s.id AS stack
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM reading)) CROSS JOIN names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
	WHERE n.name IN ('pread', 'pread64', '__pread64', '__libc_pread', '__libc_pread64')),
computed AS MATERIALIZED (
	SELECT r.hash AS hash, sum(value) AS ns, sum(1.0 * value * value) AS square
	FROM reading AS r JOIN statements AS x ON x.normalized_query_hash = r.hash JOIN queries AS q ON q.statement = x.id
	CROSS JOIN temp.selected_samples AS s ON s.run = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	WHERE trace_type = 'CPU' AND stack_id IN (SELECT stack FROM stacks_that_read)
	GROUP BY 1),
-- Emptied: before every second run, or more often.
judged AS (
	SELECT r.*, coalesce(f.runs, r.runs) AS all_runs, e.commits AS commits, coalesce(2 * e.commits >= coalesce(f.runs, r.runs), 0) AS is_emptied,
	       waited + ns AS took, square, f.cpu + waited AS whole
	FROM reading AS r JOIN computed AS c ON c.hash = r.hash JOIN temp.finding_statements AS f ON f.hash = r.hash
	LEFT JOIN emptied AS e ON e.hash = r.hash)
SELECT hash, took * (1 - 1.0 * file / bytes) AS saved, sqrt(square) AS error,
       printf('%,d', reads) AS reads, printf('%,.1f MB', bytes / 1e6) AS bytes, printf('%,.1f MB', file / 1e6) AS file, printf('%,.0f', 1.0 * bytes / file) AS times,
       duration(took) AS took, printf('%.0f', 100.0 * took / whole) AS share,
       iif(is_emptied, 'because commits of other connections empty its page cache',
           'with a page cache of ' || iif(cache_bytes < 1e5, printf('%,.0f kB', cache_bytes / 1e3), printf('%,.1f MB', cache_bytes / 1e6))) AS why,
       iif(is_emptied, printf('at least %,d commits of other connections during %,d runs', commits, all_runs),
           printf('%.0f %% of the page look-ups of its connection missed the cache', 100.0 * misses / (hits + misses))) AS evidence,
       CASE WHEN is_emptied THEN printf('a larger cache would be emptied, too: read fewer pages (an index), or let PRAGMA mmap_size = %lld on each of its connections '
                                        || 'read them without calls and copies', (cast(file * 1.1 AS INTEGER) / 1048576 + 1) * 1048576)
            WHEN file < 1e9 THEN printf('PRAGMA cache_size = -%d on each of its connections keeps the whole file in memory', file / 1024 * 1.1 + 1024)
            ELSE 'a larger PRAGMA cache_size: which one holds what it reads again is not known' END AS cure,
       iif(is_emptied, 'commits are those in the WAL by recorded programs', 'look-ups are those of the connection since it was opened') AS sure,
       iif(is_emptied, 'pragma_mmap_size', 'pragma_cache_size') AS pragma
FROM judged
WHERE took >= 0.2 * whole AND (is_emptied OR cache_bytes < 0.5 * file);
