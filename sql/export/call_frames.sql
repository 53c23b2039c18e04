-- SPDX-License-Identifier: Apache-2.0
-- The frames of a row of call_stacks, :node, in the form of frames of stacks, newest first. A frame without a file
-- represents omitted ones.
SELECT function || iif(file = '', '', ' (' || fileName(file) || iif(line > 0, ':' || line, '') || ')')
FROM (SELECT key, coalesce(json_extract(value, '$[0]'), '') AS file, coalesce(json_extract(value, '$[1]'), 0) AS line,
             coalesce(json_extract(value, '$[2]'), '') AS function
      FROM json_each((SELECT frames FROM call_stacks WHERE id = :node)))
ORDER BY key;
