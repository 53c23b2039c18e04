-- SPDX-License-Identifier: Apache-2.0
-- sql/advise/compared.sql as a table for people.
WITH shown AS (SELECT *, max(before_ns, 1) AS b, max(after_ns, 1) AS a FROM compared ORDER BY rowid)
SELECT iif(is_cut, '>', '') || CASE WHEN b >= 1e9 THEN printf('%.3g s', b / 1e9) WHEN b >= 1e6 THEN printf('%.3g ms', b / 1e6) ELSE printf('%.3g us', b / 1e3) END
       || printf(' ± %.1f %%', 100 * before_error_ns / b) AS first,
       CASE WHEN a >= 1e9 THEN printf('%.3g s', a / 1e9) WHEN a >= 1e6 THEN printf('%.3g ms', a / 1e6) ELSE printf('%.3g us', a / 1e3) END
       || printf(' ± %.1f %%', 100 * after_error_ns / a) AS this,
       printf('%+.1f %% ± %.1f', 100 * difference, 100 * difference_error) AS difference,
       verdict,
       CASE same_rows WHEN 1 THEN 'same rows' WHEN 2 THEN 'another order' WHEN 0 THEN 'OTHER ROWS' ELSE '' END AS result,
       oneLine(coalesce('PRAGMA ' || pragma, sql)) AS way
FROM shown;
