-- SPDX-License-Identifier: Apache-2.0
-- The functions on each stack of a report's samples, in temp.report_frames, for
-- those that come after: of the samples of :trace_type, of which Wall is CPU and
-- OffCPU together. After report/samples.sql.
-- depth: 0 is the leaf. place: file and line, '' where they are not known. is_of_program: neither SQLite's, nor a driver's,
-- an interpreter's or a language's.
DROP TABLE IF EXISTS temp.report_frames;

CREATE TEMP TABLE report_frames AS
SELECT stack_id, sums.value AS value, frame.key AS depth,
       frame.value ->> 0 AS function,
       coalesce(frame.value ->> 1, '') AS module,
       frame.value ->> 2 AS has_name,
       frame.value ->> 3 AS place,
       frame.value ->> 4 AS is_of_program
FROM (SELECT stack_id, sum(value) AS value FROM temp.report_samples
      WHERE (trace_type = coalesce(:trace_type, 'CPU') OR :trace_type = 'Wall' AND trace_type IN ('CPU', 'OffCPU'))
      GROUP BY stack_id) AS sums
LEFT JOIN stacks ON stacks.id = stack_id
JOIN json_each(stackFrames(coalesce(stacks.trace, '[]'))) AS frame;
