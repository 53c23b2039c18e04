-- SPDX-License-Identifier: Apache-2.0
-- The opcodes of the selected runs' programs (see read/selected.sql), with their time. The opcodes of a trigger's
-- program follow the opcode that calls it.
-- Parameters: :trace_type; :unit, if it is not ns, self_ms is a number of that unit.
WITH newest AS MATERIALIZED (
	SELECT max(program) AS program FROM (SELECT program FROM temp.selected_runs WHERE program ORDER BY id DESC LIMIT 1)),
times AS MATERIALIZED (
	SELECT opcode AS address, sum(value) AS ns
	FROM temp.selected_sums JOIN newest ON newest.program = own_program
	WHERE logged AND (trace_type = :trace_type OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))
	GROUP BY 1)
SELECT o.address & 4294967295 AS address, nullif(o.address >> 32, 0) - 1 AS trigger_address,
       iif(o.address >> 32, '  ', '') || o.opcode AS opcode, o.p1, o.p2, o.p3, o.p5,
       iif(coalesce(:unit, 'ns') = 'ns', round(t.ns / 1e6, 3), t.ns) AS self_ms,
       round(100.0 * t.ns / (SELECT sum(ns) FROM times), 1) AS self_percent,
       coalesce(n.detail, '') AS node
FROM program_opcodes AS o
JOIN newest USING (program)
LEFT JOIN plan_nodes AS n ON n.program = o.program AND n.node = o.node
LEFT JOIN times AS t ON t.address = o.address
ORDER BY o.address & 4294967295, o.address;
