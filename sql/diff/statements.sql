-- SPDX-License-Identifier: Apache-2.0
-- Statements that got slower or faster: exact times, in ms per run. :limit. Those that change the total most, by
-- their time or by their number of runs, come first. See diff/sides.sql.
--
-- noise: ~ if runs of the statement differ so much from each other that the difference of the means is not
-- significant (Welch's t-test, two-sided, 5 %: the difference compared with sqrt(va / na + vb / nb), where v is the
-- variance of a run's time; the critical value is that of Student's t for Welch's degrees of freedom, by the first
-- terms of its expansion around that of the normal distribution, 1.96). ? if one side has only one run, which shows
-- no variation.
WITH sides AS (
	SELECT hash, max(query) AS query,
	       sum(runs) FILTER (WHERE side = 'A') AS na, sum(runs) FILTER (WHERE side = 'B') AS nb,
	       sum(x) FILTER (WHERE side = 'A') AS xa, sum(x) FILTER (WHERE side = 'B') AS xb,
	       sum(spread) FILTER (WHERE side = 'A') AS sa, sum(spread) FILTER (WHERE side = 'B') AS sb
	FROM side_statements GROUP BY hash),
means AS (
	SELECT *, 1.0 * xa / na AS ma, 1.0 * xb / nb AS mb,
	       sa / (na - 1) / na AS ea, sb / (nb - 1) / nb AS eb -- NULL with one run
	FROM sides),
degrees AS (
	SELECT *, (ea + eb) * (ea + eb) / (ea * ea / (na - 1) + eb * eb / (nb - 1)) AS d FROM means),
tested AS (
	SELECT *, CASE
	       WHEN na IS NULL OR nb IS NULL THEN ''
	       WHEN ea IS NULL OR eb IS NULL THEN '?'
	       WHEN ma = mb THEN '~'
	       -- without any spread d is NULL
	       WHEN abs(mb - ma) < sqrt(ea + eb) * (1.96 + 2.37 / d + 2.82 / d / d + 2.56 / d / d / d) THEN '~'
	       ELSE '' END AS noise
	FROM degrees)
SELECT CASE WHEN na THEN printf('%.4f', ma / 1e6) ELSE '' END AS A_ms,
       CASE WHEN nb THEN printf('%.4f', mb / 1e6) ELSE '' END AS B_ms,
       CASE WHEN na AND nb THEN printf('%+.4f', (mb - ma) / 1e6) ELSE '' END AS change_ms,
       CASE WHEN na AND nb AND ma > 0 THEN printf('%+.1f', 100.0 * (mb - ma) / ma) ELSE '' END AS "change_%",
       noise,
       coalesce(na, 0) AS runs_A, coalesce(nb, 0) AS runs_B,
       printf('%+.1f', (coalesce(xb, 0) - coalesce(xa, 0)) / 1e6) AS total_ms,
       trim(replace(replace(replace(query, char(10), ' '), char(13), ' '), char(9), ' ')) AS query
FROM tested
ORDER BY iif(noise = '~', abs(nb - na) * ma, abs(coalesce(xb, 0) - coalesce(xa, 0))) DESC, hash
LIMIT coalesce(CAST(:limit AS INTEGER), 15);
