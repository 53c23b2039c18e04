-- SPDX-License-Identifier: Apache-2.0
-- Gives the rows of temp.violations their callers: of the newest logged run of the statement that has one.
UPDATE temp.violations SET (caller, caller_function) = (c.caller, c.caller_function)
FROM (SELECT normalized_query_hash AS hash, max(query_start_ns), call_stack
      FROM temp.selected_runs WHERE call_stack GROUP BY 1) AS r JOIN call_stacks AS c ON c.id = r.call_stack
WHERE r.hash = violations.hash;
