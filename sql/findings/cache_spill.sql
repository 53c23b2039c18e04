-- SPDX-License-Identifier: Apache-2.0
-- Statements that write changed pages to the file or its WAL before their transaction ends, because the page cache is full,
-- and later write them again. The names of functions show it, so the time is CPU time only, without waits for these writes.
-- Rows that are appended fill pages that are written once, which a larger cache would not save.
WITH written AS MATERIALIZED (
	SELECT statement AS hash, sum(writes) AS writes, sum(rewritten) AS rewritten FROM page_sums WHERE statement <> 0 GROUP BY 1),
spilled AS (
	SELECT hash, total(ns) FILTER (WHERE spill) / sampled * wall AS ns, sqrt(total(square) FILTER (WHERE spill)) / sampled * wall AS error,
	       total(ns) FILTER (WHERE spill) / sampled AS part
	FROM temp.finding_sampled GROUP BY hash)
SELECT s.hash AS hash, ns * rewritten / writes AS saved, error, duration(ns) AS took, printf('%.0f', 100.0 * part) AS share,
       printf('%,d of %,d pages that it wrote had been written before', rewritten, writes) AS again
FROM spilled AS s JOIN written AS w ON w.hash = s.hash
WHERE part >= 0.15 AND rewritten > 0.2 * writes;
