-- SPDX-License-Identifier: Apache-2.0
-- Functions that got slower or faster: sampled times in ms, B's for as many runs of each statement as A has. :limit;
-- :with_calls is 1 to include the functions that a function called, 0 for time in itself. If :unit is not ns, the
-- columns in ms are numbers of that unit. After diff/function_sums.sql.
--
-- noise: ~ if the difference is within the error of sampling. A count of samples is treated as a Poisson count, whose
-- variance is the count; so the variance of a sampled time is the sum of the squared times of its samples, and z is
-- the difference of two times divided by the root of the sum of their variances. |z| < 2 is noise: 1 of 20 unchanged
-- functions lacks the mark. Samples at equal distances vary less than that. The mark does not show how much runs
-- differ from each other.
WITH shown AS (
	SELECT iif(is_time, '%.1f', '%.0f') AS form, iif(is_time, '%+.1f', '%+.0f') AS form_of_change,
	       iif(is_time, 1e6, 1.0) AS scale
	FROM (SELECT coalesce(:unit, 'ns') = 'ns' AS is_time)),
sides AS (
	SELECT name, module,
	       iif(:with_calls, total_a, self_a) AS a, iif(:with_calls, total_b, self_b) AS b,
	       iif(:with_calls, total_na, self_na) AS na, iif(:with_calls, total_nb, self_nb) AS nb,
	       iif(:with_calls, total_variance, self_variance) AS variance
	FROM function_sums),
tested AS (
	SELECT *, CASE WHEN abs(b - a) < 2 * sqrt(variance) OR a = b THEN '~' ELSE '' END AS noise,
	       count(*) OVER (PARTITION BY name) AS same_name
	FROM sides WHERE na + nb > 0)
SELECT printf(form, a / scale) AS A_ms,
       printf(form, b / scale) AS B_ms,
       printf(form_of_change, (b - a) / scale) AS change_ms,
       CASE WHEN a > 0 THEN printf('%+.1f', 100.0 * (b - a) / a) ELSE '' END AS "change_%",
       noise,
       na AS n_A, nb AS n_B,
       name || CASE WHEN same_name > 1 THEN ' (' || module || ')' ELSE '' END AS function
FROM tested, shown
ORDER BY noise = '~', abs(b - a) DESC, name, module
LIMIT coalesce(CAST(:limit AS INTEGER), 15);
