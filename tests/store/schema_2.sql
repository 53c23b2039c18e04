-- SPDX-License-Identifier: Apache-2.0
-- The trace file as version 2 of it was: for tests that it can still be read.

CREATE TABLE processes (
	id            INTEGER PRIMARY KEY,
	hostname      TEXT    NOT NULL,
	process_id    INTEGER NOT NULL,
	start_time_ns INTEGER NOT NULL,
	executable    TEXT    NOT NULL
);

CREATE TABLE threads (
	id          INTEGER PRIMARY KEY,
	process     INTEGER NOT NULL REFERENCES processes (id),
	thread_id   INTEGER NOT NULL,
	thread_name TEXT    NOT NULL
);
CREATE INDEX threads_by_process ON threads (process, thread_id);

CREATE TABLE series (
	id         INTEGER PRIMARY KEY,
	thread     INTEGER NOT NULL REFERENCES threads (id),
	trace_type TEXT    NOT NULL,
	period_ns  INTEGER NOT NULL,
	epoch      INTEGER NOT NULL
);
CREATE INDEX series_by_thread ON series (thread);

CREATE TABLE modules (
	id        INTEGER PRIMARY KEY,
	build_id  TEXT    NOT NULL, -- '': none; path, size and time tell it then
	path      TEXT    NOT NULL,
	file_size INTEGER NOT NULL,
	mtime_ns  INTEGER NOT NULL,
	base      INTEGER NOT NULL,
	extent    INTEGER NOT NULL,
	elf_start INTEGER NOT NULL
);
CREATE INDEX modules_by_base ON modules (base);

CREATE TABLE stacks (
	id    INTEGER PRIMARY KEY,
	hash  INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	trace TEXT    NOT NULL
);
CREATE INDEX stacks_by_hash ON stacks (hash);

CREATE TABLE frames (
	address  INTEGER NOT NULL,
	level    INTEGER NOT NULL,
	inlined  INTEGER NOT NULL,
	function INTEGER NOT NULL, -- for people: in source form
	symbol   INTEGER NOT NULL, -- as the symbol table has it
	file     INTEGER NOT NULL,
	line     INTEGER NOT NULL,
	PRIMARY KEY (address, level)
) WITHOUT ROWID;

CREATE TABLE names (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
);

CREATE TABLE statements (
	id                    INTEGER PRIMARY KEY,
	hash                  INTEGER NOT NULL,
	normalized_query_hash INTEGER NOT NULL,
	is_cut                INTEGER NOT NULL, -- the text was longer
	query                 TEXT    NOT NULL
);
CREATE INDEX statements_by_hash ON statements (hash);

CREATE TABLE libraries (
	id      INTEGER PRIMARY KEY,
	path    TEXT    NOT NULL,
	version TEXT    NOT NULL
);

CREATE TABLE queries (
	id                INTEGER PRIMARY KEY,
	query_id          TEXT    NOT NULL,
	process           INTEGER NOT NULL,
	first_ns          INTEGER NOT NULL,
	last_ns           INTEGER NOT NULL,
	finished          INTEGER NOT NULL DEFAULT 0,
	initial           INTEGER NOT NULL DEFAULT 0,
	statement         INTEGER NOT NULL DEFAULT 0,
	query_start_ns    INTEGER NOT NULL DEFAULT 0,
	query_duration_ns INTEGER NOT NULL DEFAULT 0,
	cpu_time_ns       INTEGER NOT NULL DEFAULT 0,
	database          TEXT    NOT NULL DEFAULT '',
	thread_id         INTEGER NOT NULL DEFAULT 0,
	exception_code    INTEGER NOT NULL DEFAULT 0,
	exception         TEXT    NOT NULL DEFAULT '',
	result_rows       INTEGER NOT NULL DEFAULT 0,
	vm_steps          INTEGER NOT NULL DEFAULT 0,
	fullscan_steps    INTEGER NOT NULL DEFAULT 0,
	sorts             INTEGER NOT NULL DEFAULT 0,
	autoindexes       INTEGER NOT NULL DEFAULT 0,
	memory_usage      INTEGER NOT NULL DEFAULT 0,
	samples_cpu       INTEGER NOT NULL DEFAULT 0,
	samples_real      INTEGER NOT NULL DEFAULT 0,
	weight_cpu        INTEGER NOT NULL DEFAULT 0,
	weight_real       INTEGER NOT NULL DEFAULT 0,
	samples_dropped   INTEGER NOT NULL DEFAULT 0,
	samples_truncated INTEGER NOT NULL DEFAULT 0,
	prepare_time_ns   INTEGER NOT NULL DEFAULT 0,
	worker_cpu_time_ns INTEGER NOT NULL DEFAULT 0,
	library           INTEGER NOT NULL DEFAULT 0, -- 0: none
	expanded_query    TEXT    NOT NULL DEFAULT '',
	session           INTEGER NOT NULL DEFAULT 0  -- of its connection; 0: none
);
CREATE INDEX queries_by_query_id ON queries (query_id);
CREATE INDEX queries_by_statement ON queries (statement);
INSERT INTO queries (id, query_id, process, first_ns, last_ns)
VALUES (0, '', 0, -9223372036854775808, 9223372036854775807);

CREATE TABLE samples (
	timestamp_ns INTEGER PRIMARY KEY,
	series       INTEGER NOT NULL,
	query        INTEGER NOT NULL,
	stack        INTEGER NOT NULL,
	cpu_id       INTEGER NOT NULL,
	weight       INTEGER NOT NULL,
	truncated    INTEGER NOT NULL,
	size         INTEGER NOT NULL
);

CREATE TABLE epochs (
	id       INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL
);
INSERT INTO epochs (id, start_ns) VALUES (1, 0);

CREATE TABLE state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	identity INTEGER NOT NULL,
	removals INTEGER NOT NULL
);
INSERT INTO state (id, identity, removals) VALUES (1, random(), 0);

CREATE VIEW stack_frames AS
SELECT
	k.id AS stack_id,
	CAST(a.key AS INTEGER) AS frame,
	CAST(coalesce(f.level, 0) AS INTEGER) AS level,
	CAST(coalesce(f.inlined, 0) AS INTEGER) AS inlined,
	CAST(a.value AS INTEGER) AS address,
	coalesce(n.name,
		substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || printf('+0x%x', a.value - m.base),
		printf('0x%x', a.value & ~0x4000000000000000)) AS function,
	coalesce(y.name, '') AS symbol,
	coalesce(x.name, '') AS file,
	CAST(coalesce(f.line, 0) AS INTEGER) AS line,
	coalesce(m.path, '') AS module,
	CAST(coalesce(f.function, 0) AS INTEGER) AS function_id,
	CAST(coalesce(m.id, 0) AS INTEGER) AS module_id
FROM stacks AS k
JOIN json_each(k.trace) AS a
LEFT JOIN frames AS f ON f.address = a.value
LEFT JOIN names AS n ON n.id = f.function
LEFT JOIN names AS y ON y.id = f.symbol
LEFT JOIN names AS x ON x.id = f.file
LEFT JOIN modules AS m
  ON m.id = (SELECT i.id FROM modules AS i WHERE i.base <= a.value ORDER BY i.base DESC LIMIT 1)
  AND a.value < m.base + m.extent;

CREATE VIEW trace_log AS
SELECT
	p.hostname AS hostname,
	p.process_id AS process_id,
	strftime('%Y-%m-%d', s.timestamp_ns / 1000000000, 'unixepoch') AS event_date,
	strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch') AS event_time,
	strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch')
		|| printf('.%06d', s.timestamp_ns % 1000000000 / 1000) AS event_time_microseconds,
	s.timestamp_ns AS timestamp_ns,
	r.trace_type AS trace_type,
	s.cpu_id AS cpu_id,
	t.thread_id AS thread_id,
	t.thread_name AS thread_name,
	q.query_id AS query_id,
	s.stack AS stack_id,
	k.trace AS trace,
	s.truncated AS truncated,
	s.weight AS weight,
	r.period_ns AS period_ns,
	s.size AS size,
	q.session AS session_id,
	(SELECT '[' || coalesce(group_concat('"' || replace(replace(function, '\', '\\'), '"', '\"') || '"'), '') || ']' FROM stack_frames
	 WHERE stack_id = s.stack AND inlined = 0) AS symbols,
	(SELECT '[' || coalesce(group_concat(coalesce('"' || replace(replace(
		iif(line, file || ':' || line, nullif(module, '')), '\', '\\'), '"', '\"') || '"', 'null')), '') || ']'
	 FROM stack_frames WHERE stack_id = s.stack AND level = 0) AS lines
FROM samples AS s
LEFT JOIN series AS r ON r.id = s.series
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
LEFT JOIN stacks AS k ON k.id = s.stack;

CREATE VIEW query_log AS
SELECT
	q.query_id AS query_id,
	i.query_id AS initial_query_id,
	CASE q.exception_code WHEN 0 THEN 'QueryFinish' ELSE 'ExceptionWhileProcessing' END AS type,
	strftime('%Y-%m-%d %H:%M:%S', q.query_start_ns / 1000000000, 'unixepoch')
		|| printf('.%06d', q.query_start_ns % 1000000000 / 1000) AS query_start_time_microseconds,
	q.query_duration_ns AS query_duration_ns,
	q.cpu_time_ns AS cpu_time_ns,
	x.query AS query,
	x.normalized_query_hash AS normalized_query_hash,
	q.database AS database,
	q.thread_id AS thread_id,
	q.exception_code AS exception_code,
	q.exception AS exception,
	q.result_rows AS result_rows,
	q.vm_steps AS vm_steps,
	q.fullscan_steps AS fullscan_steps,
	q.sorts AS sorts,
	q.autoindexes AS autoindexes,
	q.memory_usage AS memory_usage,
	q.samples_cpu AS samples_cpu,
	q.samples_real AS samples_real,
	q.weight_cpu AS weight_cpu,
	q.weight_real AS weight_real,
	q.samples_dropped AS samples_dropped,
	q.samples_truncated AS samples_truncated,
	q.prepare_time_ns AS prepare_time_ns,
	q.worker_cpu_time_ns AS worker_cpu_time_ns,
	coalesce(l.version, '') AS library_version,
	coalesce(l.path, '') AS library_path,
	q.expanded_query AS expanded_query,
	q.session AS session_id
FROM queries AS q
LEFT JOIN queries AS i ON i.id = q.initial
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN libraries AS l ON l.id = q.library
WHERE q.finished;

CREATE VIEW stack_times AS
SELECT
	r.trace_type AS trace_type,
	s.stack AS stack_id,
	CAST(count(*) AS INTEGER) AS samples,
	CAST(sum(s.weight * r.period_ns) AS INTEGER) AS time_ns
FROM samples AS s
JOIN series AS r ON r.id = s.series
GROUP BY s.stack, r.trace_type;

CREATE VIEW top_functions AS
WITH
times AS MATERIALIZED (SELECT * FROM stack_times),
wholes AS MATERIALIZED (SELECT trace_type, sum(time_ns) AS whole_ns FROM times GROUP BY 1),
functions AS MATERIALIZED (
	SELECT stack_id, function_id, module_id, max(frame = 0 AND level = 0) AS is_leaf
	FROM stack_frames
	GROUP BY 1, 2, 3),
sums AS MATERIALIZED (
	SELECT trace_type, function_id, module_id, sum(time_ns * is_leaf) AS self_ns, sum(time_ns) AS total_ns
	FROM functions JOIN times USING (stack_id)
	GROUP BY 1, 2, 3)
SELECT
	trace_type,
	CAST(round(100.0 * self_ns / whole_ns, 2) AS REAL) AS self_percent,
	CAST(round(100.0 * total_ns / whole_ns, 2) AS REAL) AS total_percent,
	CAST(round(self_ns / 1e6, 3) AS REAL) AS self_ms,
	CAST(round(total_ns / 1e6, 3) AS REAL) AS total_ms,
	coalesce(n.name,
		'(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')',
		'(no module)') AS function,
	coalesce(m.path, '') AS module
FROM sums
JOIN wholes USING (trace_type)
LEFT JOIN names AS n ON n.id = function_id
LEFT JOIN modules AS m ON m.id = module_id
ORDER BY self_ns DESC, total_ns DESC, function;

CREATE VIEW top_stacks AS
WITH
times AS MATERIALIZED (SELECT * FROM stack_times),
wholes AS MATERIALIZED (SELECT trace_type, sum(time_ns) AS whole_ns FROM times GROUP BY 1),
texts AS MATERIALIZED (
	SELECT id AS stack_id,
	       (SELECT group_concat(function, ' < ') FROM stack_frames WHERE stack_id = stacks.id) AS stack
	FROM stacks)
SELECT
	trace_type,
	CAST(round(100.0 * sum(time_ns) / whole_ns, 2) AS REAL) AS percent,
	CAST(round(sum(time_ns) / 1e6, 3) AS REAL) AS ms,
	CAST(sum(samples) AS INTEGER) AS samples,
	coalesce(stack, '') AS stack
FROM times LEFT JOIN texts USING (stack_id) JOIN wholes USING (trace_type)
GROUP BY trace_type, stack
ORDER BY sum(time_ns) DESC, stack;

CREATE VIEW top_queries AS
SELECT
	normalized_query_hash,
	CAST(count(*) AS INTEGER) AS runs,
	CAST(round(sum(query_duration_ns) / 1e6, 3) AS REAL) AS ms,
	CAST(round(sum(cpu_time_ns) / 1e6, 3) AS REAL) AS cpu_ms,
	CAST(round(max(query_duration_ns) / 1e6, 3) AS REAL) AS max_ms,
	CAST(sum(samples_cpu) AS INTEGER) AS samples_cpu,
	CAST(sum(samples_real) AS INTEGER) AS samples_real,
	CAST(sum(result_rows) AS INTEGER) AS result_rows,
	min(query) AS query
FROM query_log
GROUP BY normalized_query_hash
ORDER BY sum(cpu_time_ns) DESC, sum(query_duration_ns) DESC;

CREATE VIEW query_functions AS
SELECT
	q.query_id AS query_id,
	CAST(coalesce(x.normalized_query_hash, 0) AS INTEGER) AS normalized_query_hash,
	coalesce(x.query, '') AS query,
	substr(t.value, 101) AS trace_type,
	CAST(round(100.0 * substr(t.value, 1, 20) / substr(t.value, 41, 20), 2) AS REAL) AS self_percent,
	CAST(round(100.0 * substr(t.value, 21, 20) / substr(t.value, 41, 20), 2) AS REAL) AS total_percent,
	CAST(round(substr(t.value, 1, 20) / 1e6, 3) AS REAL) AS self_ms,
	CAST(round(substr(t.value, 21, 20) / 1e6, 3) AS REAL) AS total_ms,
	coalesce(n.name,
		'(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')',
		'(no module)') AS function,
	coalesce(m.path, '') AS module
FROM queries AS q
LEFT JOIN statements AS x ON x.id = q.statement
CROSS JOIN json_each((
	SELECT '[' || group_concat(printf('"%020d%020d%020d%020d%020d%s"',
	                                  self_ns, total_ns, whole_ns, function_id, module_id, trace_type)) || ']'
	FROM (
		SELECT trace_type, function_id, module_id, sum(time_ns * is_leaf) AS self_ns, sum(time_ns) AS total_ns,
		       sum(sum(time_ns * is_leaf)) OVER (PARTITION BY trace_type) AS whole_ns
		FROM (
			SELECT trace_type, time_ns, function_id, module_id, max(frame = 0 AND level = 0) AS is_leaf
			FROM (
				SELECT r.trace_type AS trace_type, s.stack AS stack_id, sum(s.weight * r.period_ns) AS time_ns
				FROM samples AS s
				JOIN series AS r ON r.id = s.series
				WHERE s.query = q.id AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
				GROUP BY 1, 2)
			JOIN stack_frames USING (stack_id)
			GROUP BY trace_type, stack_id, function_id, module_id)
		GROUP BY 1, 2, 3))) AS t
LEFT JOIN names AS n ON n.id = substr(t.value, 61, 20) + 0
LEFT JOIN modules AS m ON m.id = substr(t.value, 81, 20) + 0
ORDER BY substr(t.value, 1, 40) DESC, function;

CREATE VIEW statement_functions AS
SELECT
	x.normalized_query_hash AS normalized_query_hash,
	x.query AS query,
	substr(t.value, 101) AS trace_type,
	CAST(round(100.0 * substr(t.value, 1, 20) / substr(t.value, 41, 20), 2) AS REAL) AS self_percent,
	CAST(round(100.0 * substr(t.value, 21, 20) / substr(t.value, 41, 20), 2) AS REAL) AS total_percent,
	CAST(round(substr(t.value, 1, 20) / 1e6, 3) AS REAL) AS self_ms,
	CAST(round(substr(t.value, 21, 20) / 1e6, 3) AS REAL) AS total_ms,
	coalesce(n.name,
		'(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')',
		'(no module)') AS function,
	coalesce(m.path, '') AS module
FROM (
	SELECT normalized_query_hash, min(query) AS query FROM statements GROUP BY normalized_query_hash) AS x
CROSS JOIN json_each((
	SELECT '[' || group_concat(printf('"%020d%020d%020d%020d%020d%s"',
	                                  self_ns, total_ns, whole_ns, function_id, module_id, trace_type)) || ']'
	FROM (
		SELECT trace_type, function_id, module_id, sum(time_ns * is_leaf) AS self_ns, sum(time_ns) AS total_ns,
		       sum(sum(time_ns * is_leaf)) OVER (PARTITION BY trace_type) AS whole_ns
		FROM (
			SELECT trace_type, time_ns, function_id, module_id, max(frame = 0 AND level = 0) AS is_leaf
			FROM (
				SELECT r.trace_type AS trace_type, s.stack AS stack_id, sum(s.weight * r.period_ns) AS time_ns
				FROM queries AS q
				CROSS JOIN samples AS s
				  ON s.timestamp_ns BETWEEN q.first_ns AND q.last_ns AND s.query = q.id
				JOIN series AS r ON r.id = s.series
				WHERE q.statement IN (
					SELECT y.id FROM statements AS y WHERE y.normalized_query_hash = x.normalized_query_hash)
				GROUP BY 1, 2)
			JOIN stack_frames USING (stack_id)
			GROUP BY trace_type, stack_id, function_id, module_id)
		GROUP BY 1, 2, 3))) AS t
LEFT JOIN names AS n ON n.id = substr(t.value, 61, 20) + 0
LEFT JOIN modules AS m ON m.id = substr(t.value, 81, 20) + 0
ORDER BY substr(t.value, 1, 40) DESC, function;
