-- SPDX-License-Identifier: Apache-2.0
-- The trace file as version 1 of it was: for tests that it can still be read.
--
-- The trace file. One source: the library runs this text when it makes a file,
-- tests and people can run it as well. PRAGMA application_id and user_version are
-- set by the code (src/store/database.c), with the same transaction.
--
-- Shape: a sample is one narrow row; all that repeats (where it was taken, its
-- stack, its query, the query's text) is a row of another table that samples name
-- by number. A row of those tables never changes its meaning.
--
-- Times: ns since 1970, UTC. Numbers over 2^63 are stored as negative.

-- Who wrote: one row a process. The start time tells processes with recycled ids
-- (or container ids, all of them 1) apart.
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

-- What the samples of one timer have in common. `epoch`: see epochs.
CREATE TABLE series (
	id         INTEGER PRIMARY KEY,
	thread     INTEGER NOT NULL REFERENCES threads (id),
	trace_type TEXT    NOT NULL,
	period_ns  INTEGER NOT NULL,
	epoch      INTEGER NOT NULL
);
CREATE INDEX series_by_thread ON series (thread);

-- The file's own address space: each module lies at `base`, chosen once, so that
-- a trace means the same whatever address a run loaded the module at. In the first
-- process the bases are the real ones. ELF address = address - base + elf_start.
-- Bit 62 (0x4000000000000000) of an address says: in no module, and the rest is
-- what it was in its process.
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

-- trace: JSON array of addresses in the space above, leaf first.
CREATE TABLE stacks (
	id    INTEGER PRIMARY KEY,
	hash  INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	trace TEXT    NOT NULL
);
CREATE INDEX stacks_by_hash ON stacks (hash);

-- Texts of queries, once each.
CREATE TABLE statements (
	id                    INTEGER PRIMARY KEY,
	hash                  INTEGER NOT NULL,
	normalized_query_hash INTEGER NOT NULL,
	is_cut                INTEGER NOT NULL, -- the text was longer
	query                 TEXT    NOT NULL
);
CREATE INDEX statements_by_hash ON statements (hash);

-- One row a query that was sampled or logged. Until its end is recorded `finished`
-- is 0 and only the first columns tell something. All its samples lie between
-- first_ns and last_ns: that range stands in for an index on samples.
-- Row 0 is "no query".
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
	samples_truncated INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX queries_by_query_id ON queries (query_id);
CREATE INDEX queries_by_statement ON queries (statement);
INSERT INTO queries (id, query_id, process, first_ns, last_ns)
VALUES (0, '', 0, -9223372036854775808, 9223372036854775807);

-- Ordered by time, which makes time ranges and "oldest first" cheap without an
-- index. Of two samples of the same nanosecond the later comes one after.
-- size: bytes, for samples of memory; 0 for those of time.
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

-- Which stacks are still needed, without counting: time is cut into epochs, and a
-- stack carries the epoch in which it was last used. Whatever was written before
-- an epoch began is older than its start_ns.
CREATE TABLE epochs (
	id       INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL
);
INSERT INTO epochs (id, start_ns) VALUES (1, 0);

-- identity: a random number, tells this file from another under its name. removals:
-- how often rows were removed to keep the size bound. A writer that finds either
-- changed forgets the numbers it knows.
CREATE TABLE state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	identity INTEGER NOT NULL,
	removals INTEGER NOT NULL
);
INSERT INTO state (id, identity, removals) VALUES (1, random(), 0);

-- What people read. The joins are outer ones so that those a query does not need
-- cost nothing.
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
	s.size AS size
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
	q.samples_truncated AS samples_truncated
FROM queries AS q
LEFT JOIN queries AS i ON i.id = q.initial
LEFT JOIN statements AS x ON x.id = q.statement
WHERE q.finished;
