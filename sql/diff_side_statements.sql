-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see diff_sides.sql). After selected.sql.
WITH runs AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, query,
	       CASE :trace_type WHEN 'Real' THEN execution_time_ns ELSE cpu_time_ns END AS x
	FROM temp.selected_runs WHERE finished),
means AS MATERIALIZED (SELECT hash, avg(x) AS mean FROM runs GROUP BY hash)
SELECT hash, min(query), count(*), sum(x), sum((x - mean) * (x - mean))
FROM runs JOIN means USING (hash)
GROUP BY hash;
