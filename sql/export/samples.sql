-- SPDX-License-Identifier: Apache-2.0
-- The samples of the selected runs (see read/selected.sql), ordered by time. :trace_type (Wall: CPU and OffCPU
-- together). `run`, `thread` and `stack_id` are row numbers, see export/query.sql, thread.sql
-- and label_sets.sql. program and node: if :with_plan
-- is not NULL, for export/plan.sql. context: of OpenTelemetry. span: if :with_links is not NULL, for export/link.sql.
-- If :with_times is not NULL, the other times are included: is_other.
SELECT timestamp_ns, weight, period_ns, value, stack_id, truncated, run, thread, labels,
       program, iif(program, (SELECT node FROM program_opcodes AS o WHERE o.program = runs.program AND o.address = nullif(s.opcode, 0)), NULL),
       wait, context, iif(:with_links IS NOT NULL, span, 0) AS span,
       trace_type,
       NOT (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU')) AS is_other
FROM temp.selected_samples AS s
LEFT JOIN (SELECT id, program FROM queries WHERE :with_plan IS NOT NULL) AS runs ON runs.id = run
WHERE trace_type = coalesce(:trace_type, 'CPU')
   OR coalesce(:with_times, iif(:trace_type = 'Wall', 1, NULL)) IS NOT NULL AND trace_type IN ('CPU', 'OffCPU')
   OR :with_times IS NOT NULL AND trace_type = 'Real'
ORDER BY timestamp_ns;
