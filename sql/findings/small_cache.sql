-- SPDX-License-Identifier: Apache-2.0
-- Statements that read the same pages again, because the page cache of their connection is much smaller than the file: in
-- all, more than twice the file. saved: the time of repeated reads, by samples for CPU time. There is no finding without the
-- names of functions, or if the reads take less than a fifth of the statement's CPU time.
WITH newest AS (
	SELECT process, session, hits, misses, cache_bytes, max(timestamp_ns), database_bytes AS file
	FROM connection_counts GROUP BY process, session),
small AS MATERIALIZED (
	SELECT * FROM newest WHERE cache_bytes < 0.5 * file),
logged AS MATERIALIZED (
	SELECT r.normalized_query_hash AS hash, sum(reads) AS reads, sum(read_bytes) AS bytes, sum(io_read_ns) AS waited, max(read_bytes), file,
	       c.cache_bytes AS cache_bytes, hits, misses
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM small)) CROSS JOIN temp.selected_runs AS r JOIN small AS c ON c.process = r.process AND c.session = r.session
	WHERE r.normalized_query_hash IN (SELECT hash FROM temp.finding_statements)
	GROUP BY 1),
-- The pages that all runs of one process read, also the short ones, unless an option selects runs. A process with several
-- connections reads a page once for each of them.
pages AS MATERIALIZED (
	SELECT p.statement AS hash, sum(p.reads) AS reads, sum(p.read_bytes + p.wal_read_bytes) AS bytes
	FROM page_sums AS p JOIN temp.finding_statements AS f ON f.hash = p.statement
	WHERE f.runs IS NOT NULL AND p.process IN (SELECT process FROM newest GROUP BY process HAVING count(*) = 1 AND max(cache_bytes < 0.5 * file))
	GROUP BY 1),
reading AS MATERIALIZED (
	SELECT l.hash AS hash, coalesce(p.reads, l.reads) AS reads, max(coalesce(p.bytes, 0), l.bytes) AS bytes, waited, file, cache_bytes, hits, misses
	FROM logged AS l LEFT JOIN pages AS p ON p.hash = l.hash AND p.bytes > l.bytes
	WHERE max(coalesce(p.bytes, 0), l.bytes) > 2 * file),
stacks_that_read AS MATERIALIZED (
	SELECT DISTINCT s.id AS stack
	FROM (SELECT 1 WHERE EXISTS (SELECT 1 FROM reading)) CROSS JOIN names AS n CROSS JOIN frames AS f ON f.function = n.id CROSS JOIN stacks AS s ON instr(s.trace, f.address)
	WHERE n.name IN ('pread', 'pread64', '__pread64', '__libc_pread', '__libc_pread64')),
computed AS MATERIALIZED (
	SELECT r.hash AS hash, sum(value) AS ns, sum(1.0 * value * value) AS square
	FROM reading AS r JOIN statements AS x ON x.normalized_query_hash = r.hash JOIN queries AS q ON q.statement = x.id
	CROSS JOIN temp.selected_samples AS s ON s.run = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
	WHERE trace_type = 'CPU' AND stack_id IN (SELECT stack FROM stacks_that_read)
	GROUP BY 1)
SELECT r.hash AS hash, (waited + ns) * (1 - 1.0 * file / bytes) AS saved, sqrt(square) AS error,
       printf('%.0f', 100.0 * misses / (hits + misses)) AS missed, iif(cache_bytes < 1e5, printf('%,.0f kB', cache_bytes / 1e3), printf('%,.1f MB', cache_bytes / 1e6)) AS cache,
       printf('%,d', reads) AS reads, printf('%,.1f MB', bytes / 1e6) AS bytes, printf('%,.1f MB', file / 1e6) AS file, printf('%,.0f', 1.0 * bytes / file) AS times,
       duration(waited + ns) AS took, printf('%.0f', 100.0 * (waited + ns) / (cpu + waited)) AS share,
       iif(file < 1e9, printf('PRAGMA cache_size = -%d on each of its connections keeps the whole file in memory', file / 1024 * 1.1 + 1024),
           'a larger PRAGMA cache_size: which one holds what it reads again is not known') AS cure
FROM reading AS r JOIN computed AS c ON c.hash = r.hash JOIN temp.finding_statements AS f ON f.hash = r.hash
WHERE waited + ns >= 0.2 * (cpu + waited);
