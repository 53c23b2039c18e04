-- SPDX-License-Identifier: Apache-2.0
-- The statements that the indexes change, as a table. Parameter: :limit, NULL: 20.
WITH shown AS (
	SELECT *, max(abs(before_ns), 1) AS b, max(abs(after_ns), 1) AS a FROM results WHERE before_ns IS NOT NULL)
SELECT iif(is_cut AND before_ns >= after_ns, '>', '') || CASE WHEN b >= 1e9 THEN printf('%.3g s', b / 1e9) WHEN b >= 1e6 THEN printf('%.3g ms', b / 1e6) ELSE printf('%.3g us', b / 1e3) END
       || printf(' ± %.1f %%', 100 * before_error_ns / b) AS before,
       CASE WHEN a >= 1e9 THEN printf('%.3g s', a / 1e9) WHEN a >= 1e6 THEN printf('%.3g ms', a / 1e6) ELSE printf('%.3g us', a / 1e3) END
       || printf(' ± %.1f %%', 100 * after_error_ns / a) AS after,
       runs, printf('%.1f ± %.1f', saved_ns / 1e6, saved_error_ns / 1e6) AS saved_ms,
       iif(written_before <> written_after, printf('%.1f -> %.1f', written_before / 1e3, written_after / 1e3), '') AS written_kB,
       substr(statement, 1, 8) AS statement, oneLine(sql) AS query
FROM shown
ORDER BY abs(saved_ns) DESC LIMIT coalesce(:limit, 20);
