-- SPDX-License-Identifier: Apache-2.0
-- The samples of the runs that are selected (see selected.sql), in the order of
-- time: :trace_type. `run`, `thread` and `stack_id` are row numbers, see
-- export_labels.sql.
SELECT timestamp_ns, weight, period_ns, value, stack_id, truncated, run, thread, labels
FROM temp.selected_samples
WHERE trace_type = coalesce(:trace_type, 'CPU')
ORDER BY timestamp_ns;
