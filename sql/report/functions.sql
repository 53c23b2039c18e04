-- SPDX-License-Identifier: Apache-2.0
-- Where the time of a report went, by function: `self` is the time in the function itself, `total` includes the
-- functions that it called. Code without a name is one line per module. :trace_type, :limit, :full (not NULL: also
-- functions that only called others). If :unit is not ns, the columns in ms are numbers of that unit. After
-- report/frames.sql and report/clocks.sql.
--
-- error is the standard error of self. Each of N samples is in the function with the function's share q of the time,
-- so the measured share has the binomial error sqrt(q (1 - q) / N). Samples at equal distances have no larger error,
-- unless the program runs in step with them. N is the number of samples, or less if they represent different times:
-- the squared sum divided by the sum of squares. The time that no sample can have seen (see report/clocks.sql) may
-- belong to the function entirely or not at all.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
all_samples AS MATERIALIZED (
	SELECT sum(value) AS value, 1.0 * sum(value) * sum(value) / sum(square) AS n FROM temp.report_samples
	WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))),
sums AS (
	SELECT name, self, total, 1.0 * self / all_samples.value AS share
	FROM (SELECT name, module, self, total FROM temp.report_functions), all_samples)
SELECT printf('%.1f', 100.0 * share) AS "self_%",
       printf('%.1f', 100.0 * sqrt(share * (1 - share) / n + unseen * unseen * max(share, 1 - share) * max(share, 1 - share))) AS "error_%",
       printf('%.1f', 100.0 * total / all_samples.value) AS "total_%",
       printf(form, self / scale) AS self_ms,
       printf(form, total / scale) AS total_ms,
       name AS function
FROM sums, all_samples, shown,
     (SELECT coalesce(max(1.0 * unseen / exact), 0) AS unseen FROM temp.report_clocks
      WHERE clock = CASE coalesce(:trace_type, 'CPU') WHEN 'CPU' THEN 'on CPU' WHEN 'OffCPU' THEN 'off CPU' ELSE 'wall' END
        AND coalesce(:unit, 'ns') = 'ns')
WHERE sums.self > 0 OR :full IS NOT NULL
ORDER BY sums.self DESC, sums.total DESC, name
LIMIT coalesce(CAST(:limit AS INTEGER), 15);
