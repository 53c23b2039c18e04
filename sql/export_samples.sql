-- The samples of the runs that are selected (see selected.sql), in the order of
-- time: :trace_type (CPU or Real). `run`, `thread` and `stack` are row numbers, see
-- export_labels.sql.
SELECT timestamp_ns, weight, period_ns, stack, truncated, run, thread
FROM temp.selected_samples JOIN series ON series.id = series
WHERE trace_type = coalesce(:trace_type, 'CPU')
ORDER BY timestamp_ns;
