-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see diff_sides.sql). After report_samples.sql.
SELECT count(*), coalesce(sum(query_duration_ns), 0), coalesce(sum(cpu_time_ns), 0),
       (SELECT coalesce(sum(samples), 0) FROM temp.report_samples WHERE trace_type = :trace_type),
       (SELECT coalesce(sum(value), 0) FROM temp.report_samples WHERE trace_type = :trace_type)
FROM temp.selected_runs WHERE finished;
