-- Where the time of a report went, by function: `self` is spent in the function
-- itself, `total` also in what it called. Code without a name is one line a module.
-- :trace_type, :limit. After report_frames.sql.
--
-- error is the standard error of self: of N samples each is in the function with
-- its share q of the time, so the share that is seen has sqrt(q (1 - q) / N), the
-- binomial one. Samples at even distances do no worse, unless what runs keeps time
-- with them. N is the number of samples, and less where they differ in the time
-- they stand for: sum squared through sum of squares.
WITH all_samples AS MATERIALIZED (
	SELECT sum(ns) AS ns, 1.0 * sum(ns) * sum(ns) / sum(square) AS n FROM temp.report_samples
	WHERE trace_type = coalesce(:trace_type, 'CPU')),
-- Each function once a stack, however often it recurs there.
functions AS (
	SELECT CASE WHEN has_name THEN function
	            WHEN module = '' THEN '(no module)'
	            ELSE '(' || module || ')' END AS name,
	       module, ns, min(depth) = 0 AS is_leaf
	FROM temp.report_frames
	GROUP BY stack_id, name, module),
sums AS (
	SELECT name, sum(functions.ns * is_leaf) AS self, sum(functions.ns) AS total,
	       1.0 * sum(functions.ns * is_leaf) / all_samples.ns AS share
	FROM functions, all_samples
	GROUP BY name, module)
SELECT printf('%.1f %%', 100.0 * share) AS self,
       printf('%.1f %%', 100.0 * sqrt(share * (1 - share) / n)) AS error,
       printf('%.1f %%', 100.0 * total / all_samples.ns) AS total,
       printf('%.1f', self / 1e6) AS self_ms,
       printf('%.1f', total / 1e6) AS total_ms,
       name AS function
FROM sums, all_samples
ORDER BY sums.self DESC, sums.total DESC, name
LIMIT coalesce(CAST(:limit AS INTEGER), 15);
