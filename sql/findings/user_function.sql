-- SPDX-License-Identifier: Apache-2.0
-- Statements that spend their time in functions that the program, a driver or an extension has registered with SQLite. In
-- their samples, at an opcode that calls a function or sorts, SQLite has called code of another module. About 3,000 samples of
-- a statement are enough. If SQLite is in the same module as the functions, they look alike, and there is no finding.
WITH costly AS MATERIALIZED (
	SELECT hash, wall FROM temp.finding_statements AS f
	WHERE wall >= 0.02 * (SELECT sum(wall) FROM temp.finding_statements)
	  AND (EXISTS (SELECT 1 FROM (SELECT DISTINCT program FROM temp.finding_programs AS p WHERE p.hash = f.hash) CROSS JOIN program_opcodes AS o USING (program)
	              WHERE o.opcode GLOB '*Func*' OR o.opcode GLOB 'Agg*')
	       -- Sorting may call a collation of the program.
	       OR EXISTS (SELECT 1 FROM temp.finding_nodes AS n WHERE n.hash = f.hash AND n.detail LIKE 'USE TEMP B-TREE FOR %' AND n.ns >= 0.3 * f.wall))),
runs AS MATERIALIZED (
	SELECT * FROM (
		SELECT c.hash AS hash, c.wall AS wall, q.id AS id, q.program AS program, q.first_ns AS first_ns, q.last_ns AS last_ns,
		       max(samples_cpu + samples_real, 1) AS samples, sum(max(samples_cpu + samples_real, 1)) OVER (PARTITION BY c.hash ORDER BY samples_cpu + samples_real DESC, q.id) AS upto
		FROM costly AS c CROSS JOIN statements AS x ON x.normalized_query_hash = c.hash CROSS JOIN queries AS q ON q.statement = x.id CROSS JOIN temp.selected AS s ON s.id = q.id)
	WHERE upto - samples < 3000),
sampled AS MATERIALIZED (
	SELECT r.hash AS hash, r.wall AS wall, s.stack_id AS stack, g.library AS library, o.opcode GLOB '*Func*' OR o.opcode GLOB 'Agg*' OR d.detail LIKE 'USE TEMP B-TREE FOR %' AS is_call, sum(value) AS ns,
	       sum(1.0 * value * value) AS square, count(*) AS samples
	FROM runs AS r CROSS JOIN temp.selected_samples AS s ON s.run = r.id
	     AND s.timestamp_ns BETWEEN r.first_ns AND r.first_ns + CAST((r.last_ns - r.first_ns) * min(1, 3000.0 / r.samples) AS INTEGER)
	LEFT JOIN programs AS g ON g.id = r.program LEFT JOIN program_opcodes AS o ON o.program = r.program AND o.address = nullif(s.opcode, 0)
	LEFT JOIN plan_nodes AS d ON d.program = o.program AND d.node = o.node
	WHERE s.trace_type IN (SELECT trace_type FROM temp.finding_types) AND s.wait & 255 <> 17
	GROUP BY 1, 3, 4, 5),
-- The innermost frame of SQLite's library in each stack. A function has few frames between that frame and the leaf.
placed AS MATERIALIZED (
	SELECT k.id AS stack, p.library AS library, k.trace AS trace, min(a.key) AS inner
	FROM (SELECT DISTINCT stack, library FROM sampled WHERE is_call) AS p JOIN libraries AS l ON l.id = p.library JOIN stacks AS k ON k.id = p.stack
	JOIN modules AS m ON m.path = l.path JOIN json_each(iif(length(k.trace) <= 10755, k.trace, '[]')) AS a ON a.value >= m.base AND a.value < m.base + m.extent
	GROUP BY 1, 2),
called AS MATERIALIZED (
	SELECT p.stack, p.library, n.name AS function, replace(m.path, rtrim(m.path, replace(m.path, '/', '')), '') AS module
	FROM (SELECT *, json_extract(trace, printf('$[%d]', inner - 1)) AS address FROM placed WHERE inner > 0) AS p
	JOIN modules AS m ON m.id = (SELECT i.id FROM modules AS i WHERE i.base <= p.address ORDER BY i.base DESC LIMIT 1) AND p.address < m.base + m.extent
	LEFT JOIN frames AS f ON f.address = p.address AND NOT f.inlined LEFT JOIN names AS n ON n.id = f.function)
SELECT s.hash AS hash, total(ns) FILTER (WHERE c.stack) / sum(ns) * wall AS saved, sqrt(total(square) FILTER (WHERE c.stack)) / sum(ns) * wall AS error,
       duration(total(ns) FILTER (WHERE c.stack) / sum(ns) * wall) AS took, printf('%.0f', 100.0 * total(ns) FILTER (WHERE c.stack) / sum(ns)) AS share,
       group_concat(DISTINCT iif(c.function <> '', c.function || ' in ', '') || c.module) AS named, printf('%,d of %,d samples', total(samples) FILTER (WHERE c.stack), sum(samples)) AS samples
FROM sampled AS s LEFT JOIN called AS c ON s.is_call AND c.stack = s.stack AND c.library = s.library
     AND c.module NOT GLOB 'lib[cmz].so*' AND c.module NOT GLOB 'ld-linux*' AND c.module NOT GLOB 'libpthread*' AND c.module NOT GLOB 'libqueryprof*'
     AND c.module NOT GLOB 'libicu*' AND c.module NOT GLOB '[[]*'
GROUP BY s.hash HAVING total(ns) FILTER (WHERE c.stack) >= 0.3 * sum(ns) AND total(samples) FILTER (WHERE c.stack) >= 5;
