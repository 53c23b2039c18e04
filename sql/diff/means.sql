-- SPDX-License-Identifier: Apache-2.0
-- The statements of side_statements (see diff/sides.sql), with both sides in a row: runs, sums and means of their times.
--
-- noise: ~ if runs of the statement differ so much from each other that the difference of the means is not
-- significant (Welch's t-test, two-sided, 5 %: the difference compared with sqrt(va / na + vb / nb), where v is the
-- variance of a run's time; the critical value is that of Student's t for Welch's degrees of freedom, by the first
-- terms of its expansion around that of the normal distribution, 1.96). ? if one side has only one run, which shows
-- no variation.
CREATE TEMP VIEW side_means AS
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
	SELECT *, (ea + eb) * (ea + eb) / (ea * ea / (na - 1) + eb * eb / (nb - 1)) AS d FROM means)
SELECT hash, query, na, nb, xa, xb, ma, mb, CASE
       WHEN na IS NULL OR nb IS NULL THEN ''
       WHEN ea IS NULL OR eb IS NULL THEN '?'
       WHEN ma = mb THEN '~'
       -- without any spread d is NULL
       WHEN abs(mb - ma) < sqrt(ea + eb) * (1.96 + 2.37 / d + 2.82 / d / d + 2.56 / d / d / d) THEN '~'
       ELSE '' END AS noise
FROM degrees;
