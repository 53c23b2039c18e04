-- SPDX-License-Identifier: Apache-2.0
-- Makes a trace file from the pulled data: from the temporary tables pull_queries, … with the rows of queries.sql, …,
-- into the tables of an empty file.
--
-- series, thread, process and stack are hashes of their content; they are also the ids in the file. A query's hash is
-- query_key; its id follows the order of its file.

CREATE TEMP TABLE pull_runs (
	id INTEGER PRIMARY KEY, query_key INTEGER NOT NULL, start_ns INTEGER NOT NULL, file_id INTEGER NOT NULL, query_id TEXT NOT NULL);
INSERT INTO pull_runs
SELECT row_number() OVER (ORDER BY file_id, run_id), query_key, start_ns, file_id, query_id FROM pull_queries
ORDER BY file_id, run_id;
CREATE INDEX temp.pull_runs_by_key ON pull_runs (query_key, start_ns);
CREATE INDEX temp.pull_runs_by_name ON pull_runs (file_id, query_id);

INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)
SELECT process, hostname, process_id, 0, program FROM pull_queries
UNION SELECT process, hostname, process_id, 0, program FROM pull_series;

INSERT INTO threads (id, process, thread_id, thread_name)
SELECT DISTINCT thread, process, thread_id, thread_name FROM pull_series;

INSERT INTO series (id, thread, trace_type, period_ns, epoch, unit)
SELECT series, thread, trace_type, period_ns, 1, unit FROM pull_series;

-- The labels of statements are included in those of their samples and runs.
INSERT INTO statements (hash, normalized_query_hash, is_cut, query)
SELECT 0, hash, 0, query FROM pull_queries UNION SELECT 0, hash, 0, query FROM pull_statements;
CREATE INDEX statements_by_text ON statements (normalized_query_hash, query);

INSERT INTO label_sets (hash, epoch, labels, units, otel_trace_id, otel_span_id)
SELECT 0, 1, label_set, '', '', '' FROM pull_samples WHERE label_set NOT IN ('', '{}')
UNION SELECT 0, 1, label_set, '', '', '' FROM pull_queries WHERE label_set NOT IN ('', '{}');
CREATE INDEX label_sets_by_text ON label_sets (labels);
INSERT INTO label_values (labels, key, value, unit, member)
SELECT s.id, e.key, e.value, '', json_quote(e.key) || ':' || json_quote(e.value)
FROM label_sets AS s JOIN json_each(iif(json_valid(s.labels), s.labels, '{}')) AS e;

INSERT INTO trace_contexts (epoch, otel_trace_id, otel_span_id)
SELECT DISTINCT 1, otel_trace_id, otel_span_id FROM pull_samples WHERE otel_trace_id <> '';

INSERT INTO losses (process, reason, first_ns, last_ns, samples, refusals)
SELECT process, reason, first_ns, max(last_ns), sum(samples), sum(refusals) FROM pull_losses
GROUP BY process, reason, first_ns;

INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, errors, rows, execution_time_ns,
	cpu_time_ns, duration_ns, min_ns, max_ns, execution_time_square, cpu_time_square, nested_time_ns, nested_cpu_time_ns,
	prepares, prepare_time_ns, vm_steps, fullscan_steps, sorts, autoindexes, first_seen_ns, last_seen_ns)
SELECT hash, database, program, (SELECT min(s.id) FROM statements AS s WHERE s.normalized_query_hash = pull_statements.hash),
	sum(calls), sum(errors), sum(rows), sum(execution_time_ns), sum(cpu_time_ns), sum(duration_ns), min(min_ns), max(max_ns),
	sum(execution_time_square), sum(cpu_time_square), sum(nested_time_ns), sum(nested_cpu_time_ns), sum(prepares),
	sum(prepare_time_ns), sum(vm_steps), sum(fullscan_steps), sum(sorts), sum(autoindexes), min(first_seen_ns), max(last_seen_ns)
FROM pull_statements
GROUP BY hash, database, program;

-- Files do not share an address space, so each module gets a new base, and code in no module gets an address of its
-- own.
INSERT INTO modules (id, build_id, path, file_size, mtime_ns, base, extent, elf_start)
SELECT id, build_id, path, 0, 0, 65536 + coalesce(sum(room) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0),
       extent, elf_start
FROM (SELECT row_number() OVER (ORDER BY min(path), build_id) AS id, build_id, min(path) AS path, max(extent) AS extent,
             max(extent) / 65536 * 65536 + 131072 AS room, min(elf_start) AS elf_start
      FROM pull_modules GROUP BY build_id, iif(build_id = '', path, ''));
CREATE INDEX temp.pull_modules_by_base ON pull_modules (file_id, base);

CREATE TEMP TABLE pull_frames AS
SELECT s.file_id, s.stack, a.key AS depth, a.value AS address, s.functions ->> CAST(a.key AS INTEGER) AS function,
       s.places ->> CAST(a.key AS INTEGER) AS place
FROM (SELECT file_id, stack, addresses, '[' || replace(json_quote(functions), char(127), '","') || ']' AS functions,
             '[' || replace(json_quote(places), char(127), '","') || ']' AS places
      FROM pull_stacks) AS s
JOIN json_each('[' || s.addresses || ']') AS a;

-- place: file:line, or the module's path if the line is not known. A function without a name is module+0x12, or 0x12
-- in no module.
CREATE TEMP TABLE pull_addresses AS
SELECT f.file_id AS file_id, f.address AS address, f.function AS function, f.place AS place,
       coalesce(n.base + f.address - m.base,
                iif(f.function GLOB '0x[0-9a-f]*', f.address, 0x4000000000000000 + row_number() OVER ())) AS made,
       NOT (f.function GLOB '0x[0-9a-f]*' OR coalesce(place = m.path AND f.function GLOB '*+0x[0-9a-f]*', 0)) AS has_name,
       rtrim(place, '0123456789') AS path
FROM (SELECT DISTINCT file_id, address, function, place FROM pull_frames) AS f
LEFT JOIN pull_modules AS m ON m.file_id = f.file_id AND m.base = (
	SELECT base FROM pull_modules WHERE file_id = f.file_id AND base <= f.address ORDER BY base DESC LIMIT 1)
	AND f.address < m.base + m.extent
LEFT JOIN modules AS n ON n.build_id = m.build_id AND (n.build_id <> '' OR n.path = m.path);
CREATE INDEX temp.pull_addresses_by_name ON pull_addresses (file_id, address, function, place);

INSERT INTO names (name)
SELECT function FROM pull_addresses WHERE has_name
UNION SELECT substr(path, 1, length(path) - 1) FROM pull_addresses WHERE has_name AND path LIKE '%_:' AND path <> place;
INSERT OR IGNORE INTO frames (address, level, inlined, function, symbol, file, line)
SELECT made, 0, 0, n.id, n.id, coalesce(x.id, 0), iif(x.id, CAST(substr(place, 1 + length(a.path)) AS INTEGER), 0)
FROM pull_addresses AS a JOIN names AS n ON n.name = a.function
LEFT JOIN names AS x ON a.path LIKE '%_:' AND a.path <> place AND x.name = substr(a.path, 1, length(a.path) - 1)
WHERE has_name;

INSERT INTO stacks (id, hash, epoch, trace)
SELECT stack, 0, 1, '[' || group_concat(made) || ']'
FROM (SELECT f.stack AS stack, a.made AS made FROM pull_frames AS f JOIN pull_addresses AS a USING (file_id, address, function, place)
      ORDER BY f.stack, f.depth)
GROUP BY stack;

-- A file has one sample for each time; later ones of the same time are moved by a nanosecond.
INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, labels, context, opcode, wait_ns, wait, transaction_number, ptr)
SELECT place + max(time_ns - place) OVER (ORDER BY place), series,
       CASE query_key WHEN 0 THEN 0 ELSE coalesce(
	       (SELECT id FROM pull_runs AS r WHERE r.query_key = s.query_key AND r.start_ns <= time_ns ORDER BY start_ns DESC LIMIT 1),
	       (SELECT id FROM pull_runs AS r WHERE r.query_key = s.query_key ORDER BY start_ns LIMIT 1), 0) END,
       stack, cpu_id, weight, truncated, size,
       coalesce((SELECT id FROM label_sets AS l WHERE l.labels = label_set), 0),
       iif(otel_trace_id = '', 0, coalesce((
	       SELECT id FROM trace_contexts AS c WHERE c.otel_span_id = s.otel_span_id AND c.otel_trace_id = s.otel_trace_id), 0)),
       opcode, wait_ns,
       iif(wait_cause = '', 0, (SELECT cause FROM wait_causes WHERE name = wait_cause)
                               + 256 * coalesce((SELECT object FROM wait_objects WHERE name = wait_object), 0)),
       transaction_number, ptr
FROM (SELECT *, row_number() OVER (ORDER BY time_ns, series, query_key, stack) AS place FROM pull_samples) AS s;

CREATE TEMP TABLE pull_times (query INTEGER PRIMARY KEY, first_ns INTEGER, last_ns INTEGER);
INSERT INTO pull_times SELECT query, min(timestamp_ns), max(timestamp_ns) FROM samples GROUP BY query;

INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, parent, statement, query_start_ns,
	query_duration_ns, execution_ns, cpu_time_ns, worker_cpu_time_ns, prepare_time_ns, database, thread_id, exception_code,
	exception, lock_wait_ns, io_read_ns, io_write_ns, io_sync_ns, mutex_wait_ns, sleep_ns, other_wait_ns, run_delay_ns, rest_ns,
	result_rows, read_bytes, write_bytes, memory_usage, vm_steps, fullscan_steps, sorts, autoindexes, samples_cpu,
	samples_real, samples_dropped, samples_truncated, labels, program)
SELECT r.id, q.query_id, process, min(q.start_ns, coalesce(t.first_ns, q.start_ns)),
	max(q.start_ns + query_duration_ns, coalesce(t.last_ns, 0)), type <> 'QueryStart',
	coalesce((SELECT i.id FROM pull_runs AS i WHERE i.file_id = q.file_id AND i.query_id = initial_query_id), 0),
	coalesce((SELECT i.id FROM pull_runs AS i WHERE i.file_id = q.file_id AND i.query_id = nullif(parent_query_id, '')), 0),
	(SELECT id FROM statements AS x WHERE x.normalized_query_hash = q.hash AND x.query = q.query),
	q.start_ns, query_duration_ns, execution_time_ns, cpu_time_ns, worker_cpu_time_ns, prepare_time_ns, database, thread_id,
	exception_code, exception, lock_wait_ns, io_read_ns, io_write_ns, io_sync_ns, mutex_wait_ns, sleep_ns, other_wait_ns,
	run_delay_ns, rest_ns, result_rows, read_bytes, write_bytes, memory_usage, vm_steps, fullscan_steps, sorts, autoindexes,
	samples_cpu, samples_real, samples_dropped, samples_truncated,
	coalesce((SELECT id FROM label_sets AS l WHERE l.labels = label_set), 0), -1
FROM (SELECT *, row_number() OVER (ORDER BY file_id, run_id) AS id FROM pull_queries) AS q
JOIN pull_runs AS r USING (id)
LEFT JOIN pull_times AS t ON t.query = r.id;

INSERT INTO missing_plans (program, reason) VALUES (-1, 'plans are not in ClickHouse');

DROP INDEX statements_by_text;
DROP INDEX label_sets_by_text;
