-- SPDX-License-Identifier: Apache-2.0
-- The time of the selected statements, as measured and as sampled. After report/clocks.sql, which explains the error.
SELECT clock,
       CASE WHEN exact IS NULL THEN '' ELSE printf('%.1f', exact / 1e6) END AS exact_ms,
       -- workers run at the same time, and the time between rows is outside, so they have no shares
       CASE WHEN coalesce(wall, 0) = 0 OR exact IS NULL OR line > 4 THEN ''
            ELSE printf('%.1f %%', 100.0 * exact / wall) END AS share,
       CASE WHEN ns IS NULL THEN '' ELSE printf('%.1f', ns / 1e6) END AS sampled_ms,
       CASE WHEN ns IS NULL OR error IS NULL THEN '' ELSE printf('%.1f', error / 1e6) END AS error_ms,
       -- below the error the number would be meaningless
       CASE WHEN ns IS NULL OR coalesce(exact, 0) = 0 OR error > exact THEN ''
            ELSE printf('%+.1f %%', 100.0 * (ns - exact) / exact) END AS differs,
       coalesce(samples, '') AS samples
FROM (SELECT line, clock, exact, samples, ns, error FROM temp.report_clocks
      UNION ALL SELECT 4, clock || ', not sampled', unseen, NULL, NULL, NULL FROM temp.report_clocks WHERE unseen > 0 AND line > 1),
     (SELECT max(exact) FILTER (WHERE line = 1) AS wall FROM temp.report_clocks)
ORDER BY line, clock DESC;
