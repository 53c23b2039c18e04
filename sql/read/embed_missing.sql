-- SPDX-License-Identifier: Apache-2.0
-- The modules of a trace file: the addresses in its stacks, and how many of them have no name or no line. Without
-- :all, only modules with missing names.
WITH addresses AS MATERIALIZED (
	SELECT DISTINCT address.value AS address
	-- In a damaged file, other stacks may be intact.
	FROM stacks JOIN json_each(iif(length(trace) <= 10755 AND json_valid(trace), trace, '[]')) AS address),
known AS (
	SELECT path, function > 0 AS has_name, file > 0 AS has_line
	FROM addresses
	JOIN modules ON modules.id = (
		SELECT id FROM modules WHERE base <= addresses.address ORDER BY base DESC LIMIT 1)
	  AND addresses.address < base + extent
	LEFT JOIN frames ON frames.address = addresses.address AND inlined = 0)
SELECT count(*) AS addresses,
       count(*) - coalesce(sum(has_name), 0) AS no_name,
       count(*) - coalesce(sum(has_line), 0) AS no_line,
       path AS module
FROM known
GROUP BY path
HAVING no_name > 0 OR :all IS NOT NULL
ORDER BY no_name DESC, no_line DESC, path;
