-- SPDX-License-Identifier: Apache-2.0
-- The trace file. The library runs this text when it makes a file; tests and people can run
-- it as well. The code (src/store/file/database.c) sets PRAGMA application_id and
-- user_version in the same transaction.
--
-- A new version only adds tables, indexes, views, and columns with a default.
-- src/store/file/upgrade.c adds to older files what they lack of this text.
--
-- A sample is one narrow row. Everything that repeats (where it was taken, its stack, its
-- query, the query's text) is a row of another table, which samples name by number. Rows of
-- those tables never change their meaning.
--
-- Times are ns since 1970, UTC. Numbers above 2^63 are stored as negative.

-- One row for each process that wrote. The start time distinguishes processes with recycled
-- ids (or container ids, which are all 1).
CREATE TABLE processes (
	id               INTEGER PRIMARY KEY,
	hostname         TEXT    NOT NULL,
	process_id       INTEGER NOT NULL,
	start_time_ns    INTEGER NOT NULL,
	executable       TEXT    NOT NULL,
	script           TEXT    NOT NULL DEFAULT '' -- what an interpreter runs; '': not known
);

CREATE TABLE threads (
	id          INTEGER PRIMARY KEY,
	process     INTEGER NOT NULL REFERENCES processes (id),
	thread_id   INTEGER NOT NULL,
	thread_name TEXT    NOT NULL
);
CREATE INDEX threads_by_process ON threads (process, thread_id);

-- What samples of the same type, thread and period have in common. A timer took samples
-- whose trace_type is CPU, Real or ProgramCPU; the values of any other type count `unit`. epoch: see
-- epochs.
CREATE TABLE series (
	id         INTEGER PRIMARY KEY,
	thread     INTEGER NOT NULL REFERENCES threads (id),
	trace_type TEXT    NOT NULL,
	period_ns  INTEGER NOT NULL,
	epoch      INTEGER NOT NULL,
	unit       TEXT    NOT NULL DEFAULT 'ns', -- of the samples' values: ns, bytes, unknown
	stretch    INTEGER NOT NULL DEFAULT 1 -- periods from one signal to the next, see query_profiler_max_threads
);
CREATE INDEX series_by_thread ON series (thread);

-- The file has its own address space. Each module has a `base`, chosen once, so a trace
-- means the same at whatever address a process loaded the module. In the first process the
-- bases are the real ones. ELF address = address - base + elf_start. Bit 62
-- (0x4000000000000000) marks an address in no module; the other bits are the address in its
-- process.
CREATE TABLE modules (
	id        INTEGER PRIMARY KEY,
	build_id  TEXT    NOT NULL, -- '': none; path, size and time identify it then
	path      TEXT    NOT NULL,
	file_size INTEGER NOT NULL,
	mtime_ns  INTEGER NOT NULL,
	base      INTEGER NOT NULL,
	extent    INTEGER NOT NULL,
	elf_start INTEGER NOT NULL
);
CREATE INDEX modules_by_base ON modules (base);

-- trace: JSON array of addresses in the space above, leaf first.
CREATE TABLE stacks (
	id    INTEGER PRIMARY KEY,
	hash  INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	trace TEXT    NOT NULL
);
CREATE INDEX stacks_by_hash ON stacks (hash);

-- The names and lines at the addresses of the traces, so that the file can be read on
-- another machine. An address without a row has no name, or was not looked up yet (see
-- src/frames/embed.h).
--
-- One row per function. `level` 0 is the innermost. The functions inlined at the address
-- come first, each inlined into the next one; the last (`inlined` 0) contains the code. The
-- line at level 0 is that of the address; at other levels it is that of the inlined call.
-- function, symbol and file are names, 0: not known.
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

-- Labels: why a sample was taken. A set is found by `hash`, over both texts. labels is a
-- JSON object. units is another one, with the keys whose numbers have a unit. The two ids
-- are those of the label traceparent. `epoch`: see epochs. Each label of a set is a row of
-- label_values, whose member is the label's text in the object.
CREATE TABLE label_sets (
	id            INTEGER PRIMARY KEY,
	hash          INTEGER NOT NULL,
	epoch         INTEGER NOT NULL,
	labels        TEXT    NOT NULL,
	units         TEXT    NOT NULL,
	otel_trace_id TEXT    NOT NULL,
	otel_span_id  TEXT    NOT NULL
);
CREATE INDEX label_sets_by_hash ON label_sets (hash);

CREATE TABLE label_values (
	labels INTEGER NOT NULL REFERENCES label_sets (id),
	key    TEXT    NOT NULL,
	value          NOT NULL,
	unit   TEXT    NOT NULL,
	member TEXT    NOT NULL,
	PRIMARY KEY (labels, key)
) WITHOUT ROWID;

-- When each trampoline belonged to which set. until_ns 0: it still does, or its process has
-- ended.
CREATE TABLE label_uses (
	process    INTEGER NOT NULL REFERENCES processes (id),
	trampoline INTEGER NOT NULL,
	from_ns    INTEGER NOT NULL,
	until_ns   INTEGER NOT NULL,
	labels     INTEGER NOT NULL,
	address    INTEGER NOT NULL, -- as it was in the process
	PRIMARY KEY (process, trampoline, from_ns)
) WITHOUT ROWID;

-- OpenTelemetry's ids, as programs publish them for their threads.
CREATE TABLE trace_contexts (
	id            INTEGER PRIMARY KEY,
	epoch         INTEGER NOT NULL,
	otel_trace_id TEXT    NOT NULL,
	otel_span_id  TEXT    NOT NULL
);
CREATE INDEX trace_contexts_by_span ON trace_contexts (otel_span_id);

-- Texts of queries, once each. labels: those of their comments.
CREATE TABLE statements (
	id                    INTEGER PRIMARY KEY,
	hash                  INTEGER NOT NULL,
	normalized_query_hash INTEGER NOT NULL,
	is_cut                INTEGER NOT NULL, -- the text was longer
	query                 TEXT    NOT NULL,
	labels                INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX statements_by_hash ON statements (hash);

-- The sums over all runs of a statement, logged or not. Statements that differ only in
-- literals are one. If there are more than log_statements_max, the least used are combined,
-- for each program, into "(other)" with the hash 0. statement: a row of statements, one of
-- the texts. Times of single runs (min_ns, max_ns, runs_…, execution_time_square) are
-- inside SQLite. Squares are sums of ns^2. runs_0: runs below 2^10 ns; runs_i: from 2^(9+i)
-- up to 2^(10+i) ns; runs_23: all above. batch: the value of state.statement_batches after
-- the transaction that last changed the row; 0: written by a version without it.
CREATE TABLE statement_counters (
	normalized_query_hash INTEGER NOT NULL,
	database           TEXT NOT NULL,
	program            TEXT NOT NULL,
	statement          INTEGER NOT NULL,
	calls              INTEGER NOT NULL DEFAULT 0,
	errors             INTEGER NOT NULL DEFAULT 0,
	rows               INTEGER NOT NULL DEFAULT 0,
	execution_time_ns  INTEGER NOT NULL DEFAULT 0,
	cpu_time_ns        INTEGER NOT NULL DEFAULT 0,
	cpu_time_estimated_ns INTEGER NOT NULL DEFAULT 0,
	duration_ns        INTEGER NOT NULL DEFAULT 0,
	min_ns             INTEGER,
	max_ns             INTEGER NOT NULL DEFAULT 0,
	execution_time_square REAL NOT NULL DEFAULT 0,
	cpu_time_square    REAL NOT NULL DEFAULT 0,
	nested_time_ns     INTEGER NOT NULL DEFAULT 0,
	nested_cpu_time_ns INTEGER NOT NULL DEFAULT 0,
	prepares           INTEGER NOT NULL DEFAULT 0,
	prepare_time_ns    INTEGER NOT NULL DEFAULT 0,
	vm_steps           INTEGER NOT NULL DEFAULT 0,
	fullscan_steps     INTEGER NOT NULL DEFAULT 0,
	sorts              INTEGER NOT NULL DEFAULT 0,
	autoindexes        INTEGER NOT NULL DEFAULT 0,
	reprepares         INTEGER NOT NULL DEFAULT 0,
	first_seen_ns      INTEGER,
	last_seen_ns       INTEGER NOT NULL DEFAULT 0,
	runs_0             INTEGER NOT NULL DEFAULT 0,
	runs_1             INTEGER NOT NULL DEFAULT 0,
	runs_2             INTEGER NOT NULL DEFAULT 0,
	runs_3             INTEGER NOT NULL DEFAULT 0,
	runs_4             INTEGER NOT NULL DEFAULT 0,
	runs_5             INTEGER NOT NULL DEFAULT 0,
	runs_6             INTEGER NOT NULL DEFAULT 0,
	runs_7             INTEGER NOT NULL DEFAULT 0,
	runs_8             INTEGER NOT NULL DEFAULT 0,
	runs_9             INTEGER NOT NULL DEFAULT 0,
	runs_10            INTEGER NOT NULL DEFAULT 0,
	runs_11            INTEGER NOT NULL DEFAULT 0,
	runs_12            INTEGER NOT NULL DEFAULT 0,
	runs_13            INTEGER NOT NULL DEFAULT 0,
	runs_14            INTEGER NOT NULL DEFAULT 0,
	runs_15            INTEGER NOT NULL DEFAULT 0,
	runs_16            INTEGER NOT NULL DEFAULT 0,
	runs_17            INTEGER NOT NULL DEFAULT 0,
	runs_18            INTEGER NOT NULL DEFAULT 0,
	runs_19            INTEGER NOT NULL DEFAULT 0,
	runs_20            INTEGER NOT NULL DEFAULT 0,
	runs_21            INTEGER NOT NULL DEFAULT 0,
	runs_22            INTEGER NOT NULL DEFAULT 0,
	runs_23            INTEGER NOT NULL DEFAULT 0,
	batch              INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (normalized_query_hash, database, program)
) WITHOUT ROWID;

-- The same by the statement's plan and the labels of its comments. layout: that of the
-- program, which distinguishes plans, see programs.layout; 0: not known. period: how often
-- the layout had changed before in its process, because each change of the plan begins a
-- row. labels: a row of label_sets, 0: none. If statement_counters exceeds the sums of
-- these rows, an older version counted the rest, or the statement has too many plans and
-- labels.
CREATE TABLE statement_parts (
	normalized_query_hash INTEGER NOT NULL,
	database           TEXT    NOT NULL,
	program            TEXT    NOT NULL,
	layout             INTEGER NOT NULL,
	period             INTEGER NOT NULL,
	labels             INTEGER NOT NULL,
	calls              INTEGER NOT NULL,
	errors             INTEGER NOT NULL,
	rows               INTEGER NOT NULL,
	execution_time_ns  INTEGER NOT NULL,
	cpu_time_ns        INTEGER NOT NULL,
	duration_ns        INTEGER NOT NULL,
	nested_time_ns     INTEGER NOT NULL,
	nested_cpu_time_ns INTEGER NOT NULL,
	max_ns             INTEGER NOT NULL,
	first_seen_ns      INTEGER NOT NULL,
	last_seen_ns       INTEGER NOT NULL,
	PRIMARY KEY (normalized_query_hash, database, program, layout, period, labels)
) WITHOUT ROWID;

-- The SQLite libraries that queries ran in.
CREATE TABLE libraries (
	id      INTEGER PRIMARY KEY,
	path    TEXT    NOT NULL,
	version TEXT    NOT NULL
);

-- Where the application called SQLite, in its own language (queries.call_stack), or executed
-- its own code (samples.call_stack). 0: not known. frames: a JSON array of [file, line, function], newest first; line 0: not
-- known. caller: file:line of the newest frame that belongs neither to a library nor to the
-- language, or else of the newest frame. function: what that line called in its language, or
-- else its own function. hash: of the frames.
CREATE TABLE call_stacks (
	id              INTEGER PRIMARY KEY,
	hash            INTEGER NOT NULL,
	frames          TEXT NOT NULL,
	caller          TEXT NOT NULL,
	caller_function TEXT NOT NULL,
	function        TEXT NOT NULL DEFAULT ''
);
CREATE INDEX call_stacks_by_hash ON call_stacks (hash);

-- The programs that SQLite executes for statements, if their plan was read, and these plans;
-- queries.program names them. id: a hash of the text, the library and the opcodes.
-- plan_hash: of the plan as a tree, without numbers that change. first_seen_ns is for
-- people: no code reads it. layout: a hash of the program without its text. It identifies a
-- statement's plan as long as its tables and indexes keep their root pages; 0: not known.
CREATE TABLE programs (
	id            INTEGER PRIMARY KEY,
	statement     INTEGER NOT NULL, -- a row of statements
	library       INTEGER NOT NULL, -- a row of libraries
	plan_hash     INTEGER NOT NULL,
	first_seen_ns INTEGER NOT NULL,
	layout        INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE plans (
	plan_hash INTEGER PRIMARY KEY,
	plan      TEXT NOT NULL -- a line a node, indented by its depth
);

-- Why a program's plan is not in `programs`, as a sentence. queries.program names these
-- rows, too.
CREATE TABLE missing_plans (
	program INTEGER PRIMARY KEY,
	reason  TEXT    NOT NULL
);

-- The nodes of a program's plan. They are those of EXPLAIN QUERY PLAN, except that a nested
-- loop is a child of its enclosing loop. Then follow nodes for work that EXPLAIN QUERY PLAN
-- does not name, and those of triggers. parent 0: the statement.
CREATE TABLE plan_nodes (
	program  INTEGER NOT NULL,
	node     INTEGER NOT NULL,
	parent   INTEGER NOT NULL,
	detail   TEXT    NOT NULL,
	compared TEXT    NOT NULL DEFAULT '', -- of a scan: the table's columns that the statement compares
	PRIMARY KEY (program, node)
) WITHOUT ROWID;

-- What was counted during a run: by SQLite, if it was built with SQLITE_ENABLE_STMT_SCANSTATUS, or by
-- queryprof, for virtual tables. Node -4:
-- rows that were looked up in the statement's Bloom filters (loops), and those that passed: the
-- mean of its runs, which any build counts.
CREATE TABLE plan_loops (
	query INTEGER NOT NULL, -- a row of queries
	node  INTEGER NOT NULL,
	loops INTEGER NOT NULL, -- how often the loop began
	rows  INTEGER NOT NULL, -- that it visited
	estimate REAL DEFAULT NULL, -- rows that the planner expected of each start of the loop
	PRIMARY KEY (query, node)
) WITHOUT ROWID;

-- node 0: the statement's own.
CREATE TABLE program_opcodes (
	program INTEGER NOT NULL,
	address INTEGER NOT NULL, -- as samples.opcode: in a trigger's program (its own + 1) << 32 | the caller's
	node    INTEGER NOT NULL,
	opcode  TEXT    NOT NULL,
	p1      INTEGER NOT NULL,
	p2      INTEGER NOT NULL,
	p3      INTEGER NOT NULL,
	p5      INTEGER NOT NULL,
	PRIMARY KEY (program, address)
) WITHOUT ROWID;

-- One row for each query that was sampled or logged. Until its end is recorded, `finished`
-- is 0 and the row has what is known so far: with `statement` also when it began, how long
-- it had run at its last sample, and its number of samples; cpu_time_ns is their sum. All
-- its samples are between first_ns and last_ns, so this range replaces an index on samples.
-- Row 0 is "no query".
CREATE TABLE queries (
	id                INTEGER PRIMARY KEY,
	query_id          TEXT    NOT NULL,
	process           INTEGER NOT NULL,
	first_ns          INTEGER NOT NULL,
	last_ns           INTEGER NOT NULL,
	finished          INTEGER NOT NULL DEFAULT 0,
	initial            INTEGER NOT NULL DEFAULT 0,
	statement          INTEGER NOT NULL DEFAULT 0,
	query_start_ns     INTEGER NOT NULL DEFAULT 0,
	query_duration_ns  INTEGER NOT NULL DEFAULT 0,
	cpu_time_ns        INTEGER NOT NULL DEFAULT 0,
	database           TEXT NOT NULL DEFAULT '',
	thread_id          INTEGER NOT NULL DEFAULT 0,
	exception_code     INTEGER NOT NULL DEFAULT 0,
	exception          TEXT NOT NULL DEFAULT '',
	result_rows        INTEGER NOT NULL DEFAULT 0,
	vm_steps           INTEGER NOT NULL DEFAULT 0,
	fullscan_steps     INTEGER NOT NULL DEFAULT 0,
	sorts              INTEGER NOT NULL DEFAULT 0,
	autoindexes        INTEGER NOT NULL DEFAULT 0,
	memory_usage       INTEGER NOT NULL DEFAULT 0,
	samples_cpu        INTEGER NOT NULL DEFAULT 0,
	samples_real       INTEGER NOT NULL DEFAULT 0,
	weight_cpu         INTEGER NOT NULL DEFAULT 0,
	weight_real        INTEGER NOT NULL DEFAULT 0,
	samples_dropped    INTEGER NOT NULL DEFAULT 0,
	samples_truncated  INTEGER NOT NULL DEFAULT 0,
	prepare_time_ns    INTEGER NOT NULL DEFAULT 0,
	worker_cpu_time_ns INTEGER NOT NULL DEFAULT 0,
	library            INTEGER NOT NULL DEFAULT 0,
	expanded_query     TEXT NOT NULL DEFAULT '',
	session            INTEGER NOT NULL DEFAULT 0,
	parent             INTEGER NOT NULL DEFAULT 0,
	batch              INTEGER NOT NULL DEFAULT 0,
	execution_ns       INTEGER DEFAULT NULL,
	threads            INTEGER NOT NULL DEFAULT 0,
	labels             INTEGER NOT NULL DEFAULT 0,
	context            INTEGER NOT NULL DEFAULT 0,
	lock_wait_ns       INTEGER NOT NULL DEFAULT 0,
	io_read_ns         INTEGER NOT NULL DEFAULT 0,
	io_write_ns        INTEGER NOT NULL DEFAULT 0,
	io_sync_ns         INTEGER NOT NULL DEFAULT 0,
	mutex_wait_ns      INTEGER NOT NULL DEFAULT 0,
	sleep_ns           INTEGER NOT NULL DEFAULT 0,
	other_wait_ns      INTEGER NOT NULL DEFAULT 0,
	run_delay_ns       INTEGER NOT NULL DEFAULT 0,
	rest_ns            INTEGER NOT NULL DEFAULT 0,
	reads              INTEGER NOT NULL DEFAULT 0,
	read_bytes         INTEGER NOT NULL DEFAULT 0,
	writes             INTEGER NOT NULL DEFAULT 0,
	write_bytes        INTEGER NOT NULL DEFAULT 0,
	syncs              INTEGER NOT NULL DEFAULT 0,
	major_faults       INTEGER NOT NULL DEFAULT 0,
	minor_faults       INTEGER NOT NULL DEFAULT 0,
	voluntary_switches INTEGER NOT NULL DEFAULT 0,
	involuntary_switches INTEGER NOT NULL DEFAULT 0,
	program            INTEGER NOT NULL DEFAULT 0,
	worker_wait_ns     INTEGER NOT NULL DEFAULT 0,
	profiler_cost_ns   INTEGER NOT NULL DEFAULT 0,
	call_stack         INTEGER NOT NULL DEFAULT 0,
	execution_time_error_ns INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX queries_by_query_id ON queries (query_id);
CREATE INDEX queries_by_statement ON queries (statement);
CREATE INDEX queries_by_batch ON queries (batch);
INSERT INTO queries (id, query_id, process, first_ns, last_ns)
VALUES (0, '', 0, -9223372036854775808, 9223372036854775807);

-- Ordered by time, which makes time ranges and "oldest first" cheap without an index. If
-- two samples have the same nanosecond, the later one gets the next. size: what the value
-- has in addition to weight * period_ns, in the unit of the series; 0 for samples that a
-- timer took (see sample_values). ptr: the address of a block of memory that was allocated
-- or freed; 0: none, or the block is not followed. Such a sample represents `weight` blocks
-- of the same size; its value is negative if the block was freed (MemoryFree).
CREATE TABLE samples (
	timestamp_ns INTEGER PRIMARY KEY,
	series             INTEGER NOT NULL,
	query              INTEGER NOT NULL,
	stack              INTEGER NOT NULL,
	cpu_id             INTEGER NOT NULL,
	weight             INTEGER NOT NULL,
	truncated          INTEGER NOT NULL,
	size               INTEGER NOT NULL,
	labels             INTEGER NOT NULL DEFAULT 0,
	context            INTEGER NOT NULL DEFAULT 0,
	opcode             INTEGER NOT NULL DEFAULT 0,
	wait_ns            INTEGER NOT NULL DEFAULT 0,
	wait               INTEGER NOT NULL DEFAULT 0,
	span               INTEGER NOT NULL DEFAULT 0,
	transaction_number INTEGER NOT NULL DEFAULT 0,
	ptr                INTEGER NOT NULL DEFAULT 0,
	call_stack         INTEGER NOT NULL DEFAULT 0
);

-- Where spans begin. statement: the normalized_query_hash of a statement whose runs are
-- spans, or whose preparations are (name is 'prepare'); the other columns are empty then.
-- wait: of waits, as in samples; otherwise 0.
CREATE TABLE span_sites (
	id        INTEGER PRIMARY KEY,
	name      TEXT    NOT NULL,
	file      TEXT    NOT NULL,
	line      INTEGER NOT NULL,
	function  TEXT    NOT NULL,
	statement INTEGER NOT NULL,
	wait      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX span_sites_by_name ON span_sites (name, line, statement);

-- The sites of statements, whose number is not bounded. No row of span_batches after
-- `newest` names the site. The site is removed when all rows up to `newest` are.
CREATE TABLE statement_sites (
	site   INTEGER PRIMARY KEY,
	newest INTEGER NOT NULL
);

-- Spans, as their thread handed them over: a row for its part of a trace, or several if
-- that is long. spans: a JSON array; item i is the span with the id first_span + i; 0:
-- none. A span is an array: site; id minus the parent's (0: the parent is the row's
-- `parent`); start minus start_ns; duration; if it differs, the time that is not its
-- children's; flags (1: without an end of its own; 2: ok; 4: error); the row of queries, 0:
-- none. trace_hi, trace_lo: the 128 bits of the trace's id. lasted_ns: from start_ns to the
-- last end. count, statements: the numbers of spans. flags: 1: `parent` belongs to another
-- program; 2: written by the thread that began the trace. duration_ns: of the trace, in the
-- row that ended it. dropped: spans that were lost. The newest row is never removed, so
-- that numbers only grow; it may have no spans.
CREATE TABLE span_batches (
	id          INTEGER PRIMARY KEY,
	trace_hi    INTEGER NOT NULL,
	trace_lo    INTEGER NOT NULL,
	parent      INTEGER NOT NULL,
	first_span  INTEGER NOT NULL,
	thread      INTEGER NOT NULL REFERENCES threads (id),
	start_ns    INTEGER NOT NULL,
	dropped     INTEGER NOT NULL,
	flags       INTEGER NOT NULL,
	lasted_ns   INTEGER NOT NULL,
	count       INTEGER NOT NULL,
	statements  INTEGER NOT NULL,
	duration_ns INTEGER,
	spans       TEXT    NOT NULL
);
-- Ids that queryprof makes begin with their time, so rows are appended to the index.
CREATE INDEX span_batches_by_trace ON span_batches (trace_hi);

-- Other traces that a row's spans belong to.
CREATE TABLE span_links (
	batch    INTEGER NOT NULL,
	trace_hi INTEGER NOT NULL,
	trace_lo INTEGER NOT NULL,
	parent   INTEGER NOT NULL
);
CREATE INDEX span_links_by_batch ON span_links (batch);
CREATE INDEX span_links_by_trace ON span_links (trace_hi);

-- The waits among the spans, by their time.
CREATE TABLE span_waits (
	start_ns    INTEGER NOT NULL,
	thread      INTEGER NOT NULL,
	duration_ns INTEGER NOT NULL,
	span        INTEGER NOT NULL,
	PRIMARY KEY (start_ns, thread)
) WITHOUT ROWID;

-- Attributes ("key":value) and events (a JSON object) of spans, in their order.
CREATE TABLE span_notes (
	id       INTEGER PRIMARY KEY,
	batch    INTEGER NOT NULL,
	span     INTEGER NOT NULL,
	is_event INTEGER NOT NULL,
	note     TEXT    NOT NULL
);
CREATE INDEX span_notes_by_batch ON span_notes (batch);
CREATE INDEX span_notes_by_span ON span_notes (span);

-- The transactions that stored something, in order, for readers that follow the file;
-- queries.batch names the last one that changed the row. process: the writer of the batch.
-- before_ns: its samples in earlier batches are not newer. first_ns, last_ns, samples: the
-- time and the number of the samples in this batch. total: the number of samples that the
-- file has had, including this batch. thread: the newest row of threads at that time, for
-- people. The newest batch and the newest thread are never removed, so that numbers only
-- grow.
CREATE TABLE batches (
	id        INTEGER PRIMARY KEY,
	process   INTEGER NOT NULL,
	before_ns INTEGER NOT NULL,
	first_ns  INTEGER NOT NULL,
	last_ns   INTEGER NOT NULL,
	samples   INTEGER NOT NULL,
	total     INTEGER NOT NULL,
	thread    INTEGER NOT NULL
);

-- The few samples that are not newer than all samples of their process in earlier batches.
CREATE TABLE late_samples (
	timestamp_ns INTEGER PRIMARY KEY,
	batch        INTEGER NOT NULL
);

-- The losses of processes, one row for each reason. samples: lost samples, rows of logs
-- and spans. refusals: timers that the system refused, threads and connections that queryprof
-- could not follow, SQLite libraries without a known allocator, and blocks of memory whose free
-- is not followed; the number of samples that are missing is not known.
CREATE TABLE losses (
	process  INTEGER NOT NULL REFERENCES processes (id),
	reason   TEXT    NOT NULL,
	first_ns INTEGER NOT NULL,
	last_ns  INTEGER NOT NULL,
	samples  INTEGER NOT NULL,
	refusals INTEGER NOT NULL,
	PRIMARY KEY (process, reason, first_ns)
) WITHOUT ROWID;

-- The waits for database locks, as lock_waits shows them. query, holder: rows of queries,
-- 0: not known. lock: a row of wait_objects, 0: none was requested. refused: 1: the lock was
-- not granted; 2: the wait continues, or the process ended during it. The newest row is
-- never removed, so that numbers only grow.
CREATE TABLE waits_for_locks (
	id                INTEGER PRIMARY KEY,
	query             INTEGER NOT NULL,
	start_ns          INTEGER NOT NULL,
	wait_ns           INTEGER NOT NULL,
	lock              INTEGER NOT NULL,
	refused           INTEGER NOT NULL,
	thread_id         INTEGER NOT NULL,
	process           INTEGER NOT NULL REFERENCES processes (id),
	database          TEXT    NOT NULL,
	holder            INTEGER NOT NULL,
	holder_query      TEXT    NOT NULL,
	holder_session    INTEGER NOT NULL,
	holder_process_id INTEGER NOT NULL,
	holder_thread_id  INTEGER NOT NULL,
	holder_transaction INTEGER NOT NULL, -- its number
	tries             INTEGER NOT NULL DEFAULT 0, -- how often the lock was refused
	code              INTEGER NOT NULL DEFAULT 0, -- SQLite's extended result code, if refused is 1
	own_transaction   INTEGER NOT NULL DEFAULT 0, -- the number of the waiter's transaction, if an earlier statement began it
	own_age_ns        INTEGER NOT NULL DEFAULT 0, -- the age of that transaction when the lock was refused
	own_query         TEXT    NOT NULL DEFAULT '', -- the statement that began it
	holder_program    TEXT    NOT NULL DEFAULT '', -- of another process: the kernel's name and its user; '': not known
	holder_user       TEXT    NOT NULL DEFAULT ''
);

CREATE INDEX waits_for_locks_by_holder ON waits_for_locks (holder_transaction, process);

-- The transactions that took long or that a statement waited for, as transaction_log shows
-- them. number: unique in the process. first, last: rows of queries. outcome: 0: nothing
-- was written; 1: committed; 2: rolled back; 3: open when last seen; 4: open when its process
-- ended. waited_for: 1: a statement waited for it; for people.
CREATE TABLE transactions (
	id           INTEGER PRIMARY KEY,
	process      INTEGER NOT NULL REFERENCES processes (id),
	number       INTEGER NOT NULL,
	session      INTEGER NOT NULL,
	thread_id    INTEGER NOT NULL,
	start_ns     INTEGER NOT NULL,
	duration_ns  INTEGER NOT NULL,
	write_ns     INTEGER NOT NULL,
	exclusive_ns INTEGER NOT NULL,
	idle_ns      INTEGER NOT NULL,
	statements   INTEGER NOT NULL,
	outcome      INTEGER NOT NULL,
	waited_for   INTEGER NOT NULL,
	first        INTEGER NOT NULL,
	last         INTEGER NOT NULL,
	database     TEXT    NOT NULL,
	first_query  TEXT    NOT NULL,
	last_query   TEXT    NOT NULL,
	pending_ns   INTEGER NOT NULL DEFAULT 0,
	cpu_ns       INTEGER DEFAULT NULL, -- this and the next two belong to the thread; NULL: not known
	idle_cpu_ns  INTEGER DEFAULT NULL,
	run_delay_ns INTEGER DEFAULT NULL
);

CREATE INDEX transactions_by_process ON transactions (process, start_ns);

-- What happened to WALs, as wal_log shows it. event: 0: transactions of one statement
-- appended frames; 1: a writer restarted at the first frame; 2: the file was truncated; 3:
-- SQLite rebuilt the index from the file. frames: the appended frames if event is 0,
-- otherwise all frames in the WAL. page_size: 0: not known. query: a row of queries, 0: not
-- known.
CREATE TABLE wal_events (
	id           INTEGER PRIMARY KEY,
	process      INTEGER NOT NULL REFERENCES processes (id),
	session      INTEGER NOT NULL,
	thread_id    INTEGER NOT NULL,
	start_ns     INTEGER NOT NULL,
	duration_ns  INTEGER NOT NULL,
	event        INTEGER NOT NULL,
	frames       INTEGER NOT NULL,
	first_frame  INTEGER NOT NULL,
	last_frame   INTEGER NOT NULL,
	transactions INTEGER NOT NULL,
	page_size    INTEGER NOT NULL,
	query        INTEGER NOT NULL,
	statement    INTEGER NOT NULL, -- its normalized_query_hash, 0: not known
	database     TEXT    NOT NULL,
	text         TEXT    NOT NULL
);

CREATE INDEX wal_events_by_database ON wal_events (database, start_ns);

-- The checkpoints of WALs, as the view checkpoints shows them. frames: in the WAL;
-- copied_before, copied_after: those of them that the database had before and after; NULL:
-- not known. mode, origin, obstacle: see the view. stopped_ns: the time from the refusal of
-- a lock until SQLite got it or gave up. holder: the statement that had that lock;
-- holder_since_ns: when its transaction began, 0: not known. query, holder: rows of queries,
-- 0: not known.
CREATE TABLE wal_checkpoints (
	id                 INTEGER PRIMARY KEY,
	process            INTEGER NOT NULL REFERENCES processes (id),
	session            INTEGER NOT NULL,
	thread_id          INTEGER NOT NULL,
	start_ns           INTEGER NOT NULL,
	duration_ns        INTEGER NOT NULL,
	cpu_ns             INTEGER NOT NULL,
	write_ns           INTEGER NOT NULL,
	wal_sync_ns        INTEGER NOT NULL,
	database_sync_ns   INTEGER NOT NULL,
	stopped_ns         INTEGER NOT NULL,
	bytes              INTEGER NOT NULL,
	result             INTEGER NOT NULL,
	mode               INTEGER NOT NULL,
	origin             INTEGER NOT NULL,
	frames             INTEGER,
	copied_before      INTEGER,
	copied_after       INTEGER,
	page_size          INTEGER NOT NULL,
	obstacle           INTEGER NOT NULL,
	mark               INTEGER NOT NULL,
	mark_frame         INTEGER NOT NULL,
	holder             INTEGER NOT NULL,
	holder_session     INTEGER NOT NULL,
	holder_process_id  INTEGER NOT NULL,
	holder_thread_id   INTEGER NOT NULL,
	holder_transaction INTEGER NOT NULL,
	holder_since_ns    INTEGER NOT NULL,
	query              INTEGER NOT NULL,
	statement          INTEGER NOT NULL, -- its normalized_query_hash, 0: not known
	database           TEXT    NOT NULL,
	text               TEXT    NOT NULL,
	holder_query       TEXT    NOT NULL
);

-- SQLite's counters of a connection's page caches since it was opened; NULL: this version of
-- SQLite does not count it. database_bytes: the size of the file; NULL: the database is not a
-- file. is_closing: the program was closing the connection.
CREATE TABLE connection_counts (
	id             INTEGER PRIMARY KEY,
	process        INTEGER NOT NULL REFERENCES processes (id),
	session        INTEGER NOT NULL,
	thread_id      INTEGER NOT NULL,
	timestamp_ns   INTEGER NOT NULL,
	is_closing     INTEGER NOT NULL,
	hits           INTEGER,
	misses         INTEGER,
	writes         INTEGER,
	spills         INTEGER,
	cache_bytes    INTEGER NOT NULL,
	database_bytes INTEGER,
	database       TEXT    NOT NULL
);

-- What a thread read and wrote of one b-tree for one statement in about a second, as the view page_io shows it; kind:
-- see there. root: the b-tree's root page, of an unknown page its own number, 0: not known, several, or none. statement: its normalized_query_hash, 0: a
-- preparation, or not known.
CREATE TABLE page_sums (
	id                 INTEGER PRIMARY KEY,
	process            INTEGER NOT NULL REFERENCES processes (id),
	thread_id          INTEGER NOT NULL,
	start_ns           INTEGER NOT NULL,
	kind               INTEGER NOT NULL,
	root               INTEGER NOT NULL,
	statement          INTEGER NOT NULL,
	reads              INTEGER NOT NULL,
	read_bytes         INTEGER NOT NULL,
	wal_read_bytes     INTEGER NOT NULL,
	writes             INTEGER NOT NULL,
	rewritten          INTEGER NOT NULL,
	wal_bytes          INTEGER NOT NULL,
	database_bytes     INTEGER NOT NULL,
	journal_bytes      INTEGER NOT NULL,
	journal_read_bytes INTEGER NOT NULL,
	database           TEXT    NOT NULL,
	btree              TEXT    NOT NULL,
	table_name         TEXT    NOT NULL
);

-- Statements that a connection had prepared and not finalized, as the view open_statements
-- shows them. measured: the number of measured statements; texts, bytes: how many different
-- texts and how much memory they have, 0: not known. text: the text whose statements have
-- the most memory; statement: its normalized_query_hash.
CREATE TABLE open_statement_counts (
	id              INTEGER PRIMARY KEY,
	process         INTEGER NOT NULL REFERENCES processes (id),
	session         INTEGER NOT NULL,
	thread_id       INTEGER NOT NULL,
	timestamp_ns    INTEGER NOT NULL,
	statements      INTEGER NOT NULL,
	measured        INTEGER NOT NULL,
	texts           INTEGER NOT NULL,
	bytes           INTEGER NOT NULL,
	cache_bytes     INTEGER NOT NULL,
	statement       INTEGER NOT NULL,
	text_statements INTEGER NOT NULL,
	text_bytes      INTEGER NOT NULL,
	database        TEXT    NOT NULL,
	text            TEXT    NOT NULL
);

-- Epochs show which stacks are still needed, without counting references. A stack has the
-- epoch in which it was last used. Everything written before an epoch began is older than
-- its start_ns.
CREATE TABLE epochs (
	id       INTEGER PRIMARY KEY,
	start_ns INTEGER NOT NULL
);
INSERT INTO epochs (id, start_ns) VALUES (1, 0);

-- identity: a random number that differs in another file with the same name. removals: how
-- often rows were removed to keep the size limit. If either has changed, a writer discards
-- the numbers that it remembers. statement_batches: the transactions that changed
-- statement_counters. program_removals: how often programs were removed.
CREATE TABLE state (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	identity INTEGER NOT NULL,
	removals INTEGER NOT NULL,
	statement_batches INTEGER NOT NULL DEFAULT 0,
	program_removals INTEGER NOT NULL DEFAULT 0
);
INSERT INTO state (id, identity, removals) VALUES (1, random(), 0);

-- Views use no JSON function except json_each, because SQLite 3.40 refuses the others if
-- the schema is not trusted. A CAST declares the type of an expression for readers that use
-- declared types (ClickHouse); without it they would read a text.

-- The frames of each stack, leaf first, one row per function. `frame` is the position in
-- trace. Functions inlined there have rows of their own, the innermost at level 0. function
-- is module+0x1234 if its name is not known, and 0x1234 (its address in the process) in no
-- module; symbol is '' then. function_id and module_id are 0 if there is none. A stack has
-- at most 512 frames; queryprof writes no longer texts.
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
JOIN json_each(iif(length(k.trace) <= 10755, k.trace, '[]')) AS a
LEFT JOIN frames AS f ON f.address = a.value
LEFT JOIN names AS n ON n.id = f.function
LEFT JOIN names AS y ON y.id = f.symbol
LEFT JOIN names AS x ON x.id = f.file
LEFT JOIN modules AS m
  ON m.id = (SELECT i.id FROM modules AS i WHERE i.base <= a.value ORDER BY i.base DESC LIMIT 1)
  AND a.value < m.base + m.extent;

-- The causes of waits, and what was waited for: wait_cause and wait_object of trace_log.
-- The flusher makes the samples of run queues and page faults, so they have no stack.
CREATE VIEW wait_causes AS
SELECT column1 AS cause, column2 AS name, column3 AS description FROM (VALUES
	(1, 'lock', 'a lock of a database, in the busy handler or in fcntl(); the object is the lock'),
	(2, 'sync', 'fsync() and fdatasync(); the object is the file'),
	(3, 'read', 'a read from a file or a pipe'),
	(4, 'write', 'a write to a file or a pipe'),
	(5, 'spill', 'a read or a write of a temporary file'),
	(6, 'checkpoint', 'input or output of a checkpoint of the WAL, inside a commit or called'),
	(7, 'mutex', 'a mutex that another thread had'),
	(8, 'condition', 'a condition variable or a semaphore'),
	(9, 'sleep', 'a sleep that no lock was the reason of'),
	(10, 'network', 'a socket'),
	(11, 'poll', 'poll(), select() or epoll_wait()'),
	(12, 'thread', 'the end of another thread'),
	(13, 'file', 'a file was opened, closed, truncated, removed or mapped'),
	(14, 'user function', 'code outside SQLite waited; the object is its cause'),
	(15, 'futex', 'a lock or a condition by the system call itself, as programs in Rust have them'),
	(16, 'page fault', 'pages that were read when the code met them: the rest of a run with major faults; its stack is not known'),
	(18, 'process', 'the end of another process'),
	(17, 'run queue', 'the thread was ready, and no processor free: run_delay_ns; its stack is not known')
);

CREATE VIEW wait_objects AS
SELECT column1 AS object, column2 AS name FROM (VALUES
	(1, 'database'),
	(2, 'journal'),
	(3, 'WAL'),
	(4, 'WAL index'),
	(5, 'temporary'),
	(6, 'pipe'),
	(7, 'socket'),
	(8, 'file'),
	(9, 'connection'),
	(10, 'page cache'),
	(11, 'allocator'),
	(12, 'other'),
	(13, 'folder'),
	(16, 'SHARED'),
	(17, 'RESERVED'),
	(18, 'PENDING'),
	(19, 'EXCLUSIVE'),
	(24, 'WAL write'),
	(25, 'WAL checkpoint'),
	(26, 'WAL recover'),
	(27, 'WAL read'),
	(33, 'lock'),
	(34, 'sync'),
	(35, 'read'),
	(36, 'write'),
	(37, 'spill'),
	(38, 'checkpoint'),
	(39, 'mutex'),
	(40, 'condition'),
	(41, 'sleep'),
	(42, 'network'),
	(43, 'poll'),
	(44, 'thread'),
	(45, 'file'),
	(46, 'user function'),
	(47, 'futex'),
	(50, 'process')
);

-- The samples, for people. The joins are outer joins, because SQLite omits an outer join
-- that a query does not need. It omits none if the query sums up, so what few columns need is
-- a subquery. symbols and lines are parallel to trace: the function that contains the code,
-- and the line of the address (the module's path if lines are not known). They cost time for
-- every row, so group by stack_id first.
CREATE VIEW trace_log AS
SELECT
	(SELECT p.hostname FROM processes AS p WHERE p.id = t.process) AS hostname,
	(SELECT p.process_id FROM processes AS p WHERE p.id = t.process) AS process_id,
	strftime('%Y-%m-%d', s.timestamp_ns / 1000000000, 'unixepoch') AS event_date,
	strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch') AS event_time,
	strftime('%Y-%m-%d %H:%M:%S', s.timestamp_ns / 1000000000, 'unixepoch') || printf('.%06d', s.timestamp_ns % 1000000000 / 1000) AS event_time_microseconds,
	s.timestamp_ns, iif(r.trace_type = 'MemoryFree', 'MemorySample', r.trace_type) AS trace_type, s.cpu_id, t.thread_id, t.thread_name, q.query_id,
	s.stack AS stack_id,
	(SELECT k.trace FROM stacks AS k WHERE k.id = s.stack) AS trace,
	s.truncated, s.weight, r.period_ns,
	CAST(iif(r.unit = 'bytes', (s.size + s.weight * r.period_ns) / max(s.weight, 1), 0) AS INTEGER) AS size,
	q.session AS session_id,
	CAST(s.size + s.weight * r.period_ns AS INTEGER) AS value,
	r.unit,
	coalesce(
		iif(x.labels, (SELECT iif(g.id IS NULL, h.labels, (SELECT '{' || group_concat(v.member) || '}' FROM label_values AS v WHERE v.labels = h.id OR (v.labels = g.id AND NOT EXISTS (SELECT 1 FROM label_values AS w WHERE w.labels = h.id AND w.key = v.key))))
		               FROM label_sets AS h LEFT JOIN label_sets AS g ON g.id = s.labels WHERE h.id = x.labels), NULL),
		iif(s.labels, (SELECT g.labels FROM label_sets AS g WHERE g.id = s.labels), NULL), '{}') AS labels,
	coalesce(
		iif(s.context, (SELECT c.otel_trace_id FROM trace_contexts AS c WHERE c.id = s.context), NULL),
		iif(x.labels, (SELECT nullif(h.otel_trace_id, '') FROM label_sets AS h WHERE h.id = x.labels), NULL),
		iif(s.labels, (SELECT g.otel_trace_id FROM label_sets AS g WHERE g.id = s.labels), NULL), '') AS otel_trace_id,
	coalesce(
		iif(s.context, (SELECT c.otel_span_id FROM trace_contexts AS c WHERE c.id = s.context), NULL),
		iif(x.labels, (SELECT nullif(h.otel_span_id, '') FROM label_sets AS h WHERE h.id = x.labels), NULL),
		iif(s.labels, (SELECT g.otel_span_id FROM label_sets AS g WHERE g.id = s.labels), NULL), '') AS otel_span_id,
	CAST(nullif(s.opcode & 4294967295, 0) AS INTEGER) AS opcode,
	s.wait_ns,
	iif(s.wait, (SELECT w.name FROM wait_causes AS w WHERE w.cause = s.wait & 255), '') AS wait_cause,
	iif(s.wait >> 8, (SELECT w.name FROM wait_objects AS w WHERE w.object = s.wait >> 8), '') AS wait_object,
	iif(s.span, printf('%016x', s.span), '') AS span_id,
	CAST(r.period_ns * r.stretch AS INTEGER) AS interval_ns,
	CAST(nullif(s.opcode >> 32, 0) - 1 AS INTEGER) AS trigger_opcode,
	iif(r.trace_type IN ('ProgramCPU', 'ProgramOffCPU'), iif(s.query, 'rows', 'transaction'), '') AS outside,
	s.transaction_number,
	s.ptr,
	(SELECT '[' || coalesce(group_concat('"' || replace(replace(function, '\', '\\'), '"', '\"') || '"'), '') || ']' FROM stack_frames
	 WHERE stack_id = s.stack AND inlined = 0) AS symbols,
	(SELECT '[' || coalesce(group_concat(coalesce('"' || replace(replace(
		iif(line, file || ':' || line, nullif(module, '')), '\', '\\'), '"', '\"') || '"', 'null')), '') || ']'
	 FROM stack_frames WHERE stack_id = s.stack AND level = 0) AS lines,
	s.call_stack AS call_stack_id
FROM samples AS s
LEFT JOIN series AS r ON r.id = s.series
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
LEFT JOIN statements AS x ON x.id = q.statement;

-- The sampled blocks of memory that were not freed: the samples of their allocation. The last sample at an address
-- decides. Blocks of processes that have ended are those that they had then.
CREATE VIEW live_memory AS
SELECT * FROM trace_log
WHERE timestamp_ns IN (
	SELECT timestamp_ns FROM (
		SELECT max(s.timestamp_ns) AS timestamp_ns, r.trace_type AS trace_type
		FROM samples AS s JOIN series AS r ON r.id = s.series JOIN threads AS t ON t.id = r.thread
		WHERE s.ptr <> 0
		GROUP BY t.process, s.ptr)
	WHERE trace_type = 'MemorySample');

-- The transactions that other processes waited for. The kernel names only the process of the
-- holder. Among that process's transactions on the database, the holder is the one that had
-- such a lock and was open for the longest part of the wait. A wait has no row if its holder
-- is not recorded or has not ended yet. Few transactions take much longer than the mean, so
-- the others are searched only near the wait. The + keeps SQLite from using the index: it
-- would then expect few rows, and build no automatic index for the readers of this view.
CREATE VIEW foreign_lock_holders AS
WITH
typical AS MATERIALIZED (SELECT CAST(coalesce(30 * avg(duration_ns), 0) AS INTEGER) AS most_ns FROM transactions),
long AS MATERIALIZED (SELECT * FROM transactions WHERE duration_ns > (SELECT most_ns FROM typical))
SELECT
	l.id AS wait,
	l.wait_ns,
	(SELECT id FROM (
		SELECT t.id AS id, t.process AS process, t.start_ns AS start_ns,
		       min(t.start_ns + t.duration_ns, l.start_ns + l.wait_ns) - max(t.start_ns, l.start_ns) AS overlap_ns
		FROM (
			SELECT t.id, t.process, t.start_ns, t.duration_ns, t.write_ns, t.pending_ns, t.database
			FROM processes AS h CROSS JOIN transactions AS t ON t.process = h.id
			WHERE h.process_id = l.holder_process_id AND h.hostname = p.hostname AND h.id <> l.process
			AND t.start_ns BETWEEN l.start_ns - (SELECT most_ns FROM typical) AND l.start_ns + l.wait_ns
			AND t.duration_ns <= (SELECT most_ns FROM typical)
			UNION ALL
			SELECT t.id, t.process, t.start_ns, t.duration_ns, t.write_ns, t.pending_ns, t.database
			FROM long AS t CROSS JOIN processes AS h ON h.id = t.process
			WHERE h.process_id = l.holder_process_id AND h.hostname = p.hostname AND h.id <> l.process
			AND t.start_ns <= l.start_ns + l.wait_ns) AS t
		WHERE t.database = l.database
		AND t.start_ns + t.duration_ns > l.start_ns
		AND CASE o.name WHEN 'WAL write' THEN t.write_ns WHEN 'RESERVED' THEN t.write_ns
			WHEN 'SHARED' THEN t.pending_ns ELSE 1 END > 0)
	ORDER BY overlap_ns DESC, process, start_ns, id LIMIT 1) AS holder
FROM waits_for_locks AS l
LEFT JOIN processes AS p ON p.id = l.process
LEFT JOIN wait_objects AS o ON o.object = l.lock
WHERE l.holder_process_id <> 0 AND +l.holder_transaction = 0;

-- The waits for database locks: the statement that waited, how long, and the holder. The
-- holder is the statement that took the lock, or, in another process, the first statement
-- of its transaction.
CREATE VIEW lock_waits AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', l.start_ns / 1000000000, 'unixepoch') || printf('.%06d', l.start_ns % 1000000000 / 1000) AS event_time_microseconds,
	l.id,
	l.start_ns AS timestamp_ns,
	p.hostname, p.process_id, l.thread_id,
	q.session AS session_id,
	q.query_id, x.query, l.database,
	o.name AS lock,
	l.wait_ns,
	CASE WHEN l.refused = 0 THEN 'SQLITE_OK' WHEN l.refused = 2 THEN 'waiting' ELSE CASE l.code
		WHEN 6 THEN 'SQLITE_LOCKED' WHEN 261 THEN 'SQLITE_BUSY_RECOVERY' WHEN 262 THEN 'SQLITE_LOCKED_SHAREDCACHE'
		WHEN 517 THEN 'SQLITE_BUSY_SNAPSHOT' WHEN 518 THEN 'SQLITE_LOCKED_VTAB' WHEN 773 THEN 'SQLITE_BUSY_TIMEOUT'
		ELSE 'SQLITE_BUSY' END END AS outcome,
	coalesce(h.query_id, fq.query_id) AS holder_query_id,
	coalesce(nullif(l.holder_query, ''), hx.query, ft.first_query, '') AS holder_query,
	CAST(coalesce(ft.session, l.holder_session) AS INTEGER) AS holder_session_id,
	l.holder_process_id,
	CAST(coalesce(ft.thread_id, l.holder_thread_id) AS INTEGER) AS holder_thread_id,
	CAST(coalesce(ft.number, l.holder_transaction) AS INTEGER) AS holder_transaction,
	CASE WHEN l.refused <> 1 OR l.code = 0 THEN '' WHEN l.code = 517 THEN 'old snapshot' WHEN l.code = 261 THEN 'recovery'
	     WHEN l.code = 262 THEN 'shared cache' WHEN l.code & 255 = 6 THEN 'own statements' WHEN l.tries <> 1 THEN 'time limit'
	     WHEN l.own_transaction AND o.name IN ('RESERVED', 'WAL write') THEN 'read before write' ELSE 'no wait' END AS reason,
	l.tries, l.own_transaction, l.own_age_ns, l.own_query, l.holder_program, l.holder_user
FROM waits_for_locks AS l
LEFT JOIN processes AS p ON p.id = l.process
LEFT JOIN queries AS q ON q.id = l.query
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN queries AS h ON h.id = l.holder
LEFT JOIN statements AS hx ON hx.id = h.statement
LEFT JOIN wait_objects AS o ON o.object = l.lock
LEFT JOIN foreign_lock_holders AS f ON f.wait = l.id
LEFT JOIN transactions AS ft ON ft.id = f.holder
LEFT JOIN queries AS fq ON fq.id = ft.first;

-- Each wait for a lock in a sentence, and how to avoid it, if that is known. cause: the sentence, with texts of
-- statements cut at 60 characters. thread: the holder's. The clock of the holder's thread gives its CPU time outside
-- SQLite.
CREATE VIEW lock_story AS
WITH
waits AS MATERIALIZED (SELECT * FROM lock_waits),
held AS MATERIALIZED (
	SELECT p.hostname AS hostname, p.process_id AS process_id, t.process AS process, t.session AS session, t.number AS number,
	       t.thread_id AS thread_id, t.idle_ns AS idle_ns, t.idle_cpu_ns AS idle_cpu_ns, t.write_ns AS write_ns,
	       t.pending_ns AS pending_ns, t.duration_ns AS duration_ns, t.last_query AS last_query, t.outcome AS outcome,
	       substr(b.caller, 1 + length(rtrim(b.caller, replace(b.caller, '/', '')))) AS last_caller
	FROM transactions AS t JOIN processes AS p ON p.id = t.process
	LEFT JOIN queries AS q ON q.id = t.last LEFT JOIN call_stacks AS b ON b.id = q.call_stack
	WHERE t.number IN (SELECT holder_transaction FROM waits WHERE holder_transaction <> 0)),
named AS MATERIALIZED (
	SELECT p.hostname AS hostname, p.process_id AS process_id, t.thread_id AS thread_id,
	       max(t.thread_name || iif(EXISTS (SELECT 1 FROM threads AS o WHERE o.process = t.process AND o.thread_name = t.thread_name
	                                        AND o.thread_id <> t.thread_id), ' ' || t.thread_id, '')) AS name
	FROM threads AS t JOIN processes AS p ON p.id = t.process
	WHERE t.thread_id IN (SELECT holder_thread_id FROM waits) GROUP BY 1, 2, 3),
told AS (
	SELECT w.*, substr(w.database, 1 + length(rtrim(w.database, replace(w.database, '/', '')))) AS file,
	       iif(length(w.query) > 60, substr(w.query, 1, 57) || '...', coalesce(w.query, 'A statement')) AS victim,
	       iif(length(w.holder_query) > 60, substr(w.holder_query, 1, 57) || '...', w.holder_query) AS holder,
	       iif(length(w.own_query) > 60, substr(w.own_query, 1, 57) || '...', w.own_query) AS own,
	       coalesce(nullif(n.name, ''), '') AS thread,
	       -- for the kind of lock that the statement waited for
	       CASE WHEN w.lock IN ('WAL write', 'RESERVED') AND h.write_ns > 0 THEN h.write_ns
	            WHEN w.lock IN ('SHARED', 'PENDING') AND h.pending_ns > 0 THEN h.pending_ns ELSE h.duration_ns END AS held_ns,
	       h.idle_ns AS idle_ns, h.idle_cpu_ns AS idle_cpu_ns,
	       CASE WHEN h.outcome >= 3 THEN ', and had not ended when it was last seen'
	            ELSE iif(h.last_query NOT IN ('', w.holder_query), ', until ' || iif(length(h.last_query) > 60, substr(h.last_query, 1, 57) || '...', h.last_query), '')
	                 || coalesce(' at ' || nullif(h.last_caller, ''), '') END AS until,
	       EXISTS (SELECT 1 FROM processes AS p WHERE p.process_id = w.holder_process_id AND p.hostname = w.hostname) AS is_recorded
	FROM waits AS w
	LEFT JOIN held AS h ON h.number = w.holder_transaction AND h.session = w.holder_session_id AND h.process_id = w.holder_process_id AND h.hostname = w.hostname
	LEFT JOIN named AS n ON n.thread_id = w.holder_thread_id AND n.process_id = w.holder_process_id AND n.hostname = w.hostname)
SELECT
	event_time_microseconds,
	timestamp_ns,
	hostname,
	process_id,
	thread_id,
	query_id,
	query,
	holder_process_id,
	holder_transaction,
	outcome,
	CASE reason
	WHEN 'old snapshot' THEN
		victim || ' failed with SQLITE_BUSY_SNAPSHOT without waiting: its transaction has read ' || file || ' since ' || own || ', '
		|| printf(iif(own_age_ns < 1e9, '%.1f ms', '%.2f s'), own_age_ns / iif(own_age_ns < 1e9, 1e6, 1e9)) || ' before, and '
		|| CASE WHEN holder <> '' THEN holder || iif(thread <> '', ' (thread ' || thread || ')', '')
		        ELSE 'another process, or a connection that is closed or not followed,' END || ' has written to it since then.'
	WHEN 'recovery' THEN
		victim || printf(iif(wait_ns < 1e9, ' waited %.1f ms', ' waited %.2f s'), wait_ns / iif(wait_ns < 1e9, 1e6, 1e9))
		|| ' and failed with SQLITE_BUSY_RECOVERY: another connection was recovering the WAL of ' || file || ', as the first one does after a crash.'
	WHEN 'shared cache' THEN
		victim || ' failed with SQLITE_LOCKED_SHAREDCACHE without waiting: another connection with the same shared cache has the table locked'
		|| coalesce((SELECT ' (' || exception || ')' FROM queries AS q WHERE q.query_id = told.query_id AND exception LIKE 'database table is locked: %'), '') || '.'
	WHEN 'own statements' THEN
		victim || ' failed with ' || outcome || ': another statement of the same connection is still open.'
	ELSE
		victim || CASE WHEN reason IN ('read before write', 'no wait') THEN ' failed with ' || outcome || ' without waiting for the ' || lock || ' lock of ' || file
		               ELSE printf(iif(wait_ns < 1e9, ' waited %.1f ms', ' waited %.2f s'), wait_ns / iif(wait_ns < 1e9, 1e6, 1e9)) || ' for the ' || lock || ' lock of ' || file
		                    || CASE outcome WHEN 'SQLITE_OK' THEN '' WHEN 'waiting' THEN ' when it was last seen' ELSE ' and failed with ' || outcome END END
		|| CASE WHEN reason = 'read before write' THEN ': its transaction has read since ' || own
		             || printf(iif(own_age_ns < 1e9, ', %.1f ms before', ', %.2f s before'), own_age_ns / iif(own_age_ns < 1e9, 1e6, 1e9))
		             || ', and SQLite calls no busy handler then, because two such transactions would wait for each other' ELSE '' END
		|| '. '
		|| CASE WHEN holder_process_id = 0 THEN 'Its holder is not known: the lock was free again when queryprof asked the kernel.'
		        WHEN NOT is_recorded THEN 'Process ' || holder_process_id || coalesce(' (' || nullif(holder_program, '') || ', user ' || holder_user || ')', '')
		             || ', which is not recorded, held it.'
		        ELSE iif(thread <> '', 'Thread ' || thread || iif(holder_process_id <> process_id, ' of process ' || holder_process_id, ''), 'Process ' || holder_process_id)
		             || ' held it' || iif(held_ns IS NULL, '', printf(iif(held_ns < 1e9, ' for %.1f ms', ' for %.2f s'), held_ns / iif(held_ns < 1e9, 1e6, 1e9))
		                || iif(idle_ns > held_ns / 2, printf(iif(idle_ns < 1e9, ', %.1f ms of its transaction outside SQLite', ', %.2f s of its transaction outside SQLite'), idle_ns / iif(idle_ns < 1e9, 1e6, 1e9))
		                     || iif(idle_cpu_ns IS NULL, '', printf(iif(idle_cpu_ns < 1e9, ' (%.1f ms on CPU)', ' (%.2f s on CPU)'), idle_cpu_ns / iif(idle_cpu_ns < 1e9, 1e6, 1e9))), ''))
		             || iif(holder <> '', ', since ' || holder, '') || coalesce(until, '') || '.' END
	END AS cause,
	CASE
	WHEN reason = 'old snapshot' THEN 'Waiting cannot help, because the transaction would have to read again. BEGIN IMMEDIATE helps: it waits before it reads.'
	WHEN reason = 'read before write' THEN 'BEGIN IMMEDIATE for transactions that will write: it waits before it reads.'
	WHEN reason = 'recovery' THEN 'Set a busy timeout, or run the statement again.'
	WHEN reason = 'shared cache' THEN 'Open the connections without a shared cache, or wait with sqlite3_unlock_notify(): a busy timeout does not apply.'
	WHEN reason = 'own statements' THEN 'Reset or finalize that statement first.'
	-- SQLite calls no busy handler when it leaves WAL mode
	WHEN reason = 'no wait' AND lock = 'EXCLUSIVE' AND query LIKE 'PRAGMA%journal_mode%' THEN 'SQLite does not wait for this: change the journal mode while no other connection has the file open.'
	WHEN reason = 'no wait' AND tries = 1 THEN 'A busy timeout (sqlite3_busy_timeout(), PRAGMA busy_timeout) would wait for the lock.'
	WHEN idle_ns > held_ns / 2 AND lock = 'WAL read' THEN 'Finish or reset the statement that reads before the program does other work.'
	WHEN idle_ns > held_ns / 2 THEN 'Do the other work before BEGIN or after COMMIT.'
	ELSE '' END AS cure,
	reason,
	thread,
	wait_ns
FROM told;

-- Statements that waited for a statement that waited itself, among the 1,000 longest waits. Each link of a chain has a
-- row. depth 0: the statement that nobody waited for; the holder of its lock waits at depth 1, and so on. A holder's own
-- wait is the wait of its thread that overlaps most. If two wait for each other, the chain begins with the shorter wait.
CREATE VIEW lock_chains AS
WITH RECURSIVE
waits AS MATERIALIZED (
	SELECT row_number() OVER (ORDER BY wait_ns DESC, timestamp_ns, process_id, thread_id) AS number, timestamp_ns + wait_ns AS until_ns, *
	FROM lock_waits WHERE wait_ns > 0 ORDER BY wait_ns DESC, timestamp_ns, process_id, thread_id LIMIT 1000),
links AS MATERIALIZED (
	SELECT v.number AS victim, w.number AS holder, max(min(v.until_ns, w.until_ns) - max(v.timestamp_ns, w.timestamp_ns)) AS overlap_ns
	FROM waits AS v JOIN waits AS w
	  ON w.process_id = v.holder_process_id AND w.thread_id = v.holder_thread_id AND w.hostname = v.hostname
	WHERE w.timestamp_ns < v.until_ns AND w.until_ns > v.timestamp_ns AND w.number <> v.number
	GROUP BY v.number),
chains (chain, depth, number, seen) AS (
	SELECT number, 0, number, ',' || number || ',' FROM waits
	WHERE number NOT IN (SELECT holder FROM links)
	   OR number IN (SELECT a.victim FROM links AS a JOIN links AS b ON b.victim = a.holder AND b.holder = a.victim WHERE a.victim > a.holder)
	UNION ALL
	SELECT chain, depth + 1, holder, seen || holder || ',' FROM chains JOIN links ON victim = number
	WHERE depth < 20 AND instr(seen, ',' || holder || ',') = 0)
SELECT
	c.chain, c.depth, w.timestamp_ns, w.hostname, w.process_id, w.thread_id, w.session_id, w.query_id, w.query,
	w.database, w.lock, w.wait_ns, w.outcome, w.holder_process_id, w.holder_thread_id, w.holder_session_id,
	w.holder_transaction, w.holder_query
FROM chains AS c JOIN waits AS w ON w.number = c.number
ORDER BY c.chain, c.depth;

-- The transactions that took long or that a statement waited for: what each did, how long
-- it held its locks, and what that has cost other connections.
CREATE VIEW transaction_log AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', t.start_ns / 1000000000, 'unixepoch') || printf('.%06d', t.start_ns % 1000000000 / 1000) AS event_time_microseconds,
	t.start_ns AS timestamp_ns,
	p.hostname, p.process_id, t.thread_id,
	t.session AS session_id,
	t.number AS transaction_number,
	t.database,
	CASE t.outcome WHEN 0 THEN 'read' WHEN 1 THEN 'commit' WHEN 2 THEN 'rollback' ELSE '' END AS outcome,
	t.duration_ns,
	t.write_ns AS write_lock_ns,
	t.exclusive_ns AS exclusive_lock_ns,
	t.idle_ns, t.statements,
	f.query_id AS first_query_id,
	t.first_query,
	e.query_id AS last_query_id,
	t.last_query,
	CAST((SELECT count(*) FROM waits_for_locks AS l WHERE l.process = t.process AND l.holder_transaction = t.number) + coalesce(w.waits, 0) AS INTEGER) AS waits,
	CAST((SELECT coalesce(sum(l.wait_ns), 0) FROM waits_for_locks AS l WHERE l.process = t.process AND l.holder_transaction = t.number) + coalesce(w.waited_ns, 0) AS INTEGER) AS waited_ns,
	t.pending_ns AS pending_lock_ns,
	t.cpu_ns AS cpu_time_ns,
	t.idle_cpu_ns AS idle_cpu_time_ns,
	t.run_delay_ns,
	CASE t.outcome WHEN 0 THEN 'ended' WHEN 1 THEN 'committed' WHEN 2 THEN 'rolled back' WHEN 3 THEN 'open' ELSE 'killed' END AS state
FROM transactions AS t
LEFT JOIN (SELECT holder, count(*) AS waits, sum(wait_ns) AS waited_ns FROM foreign_lock_holders GROUP BY holder) AS w ON w.holder = t.id
LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN queries AS f ON f.id = t.first
LEFT JOIN queries AS e ON e.id = t.last;

-- What happened to WALs: a row for each statement and second in which its transactions
-- appended frames, and for each restart, truncation and recovery.
CREATE VIEW wal_log AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', e.start_ns / 1000000000, 'unixepoch') || printf('.%06d', e.start_ns % 1000000000 / 1000) AS event_time_microseconds,
	e.id,
	e.start_ns AS timestamp_ns,
	p.hostname, p.process_id, e.thread_id,
	e.session AS session_id,
	CASE e.event WHEN 0 THEN 'append' WHEN 1 THEN 'restart' WHEN 2 THEN 'truncate' ELSE 'recover' END AS event,
	q.query_id,
	e.text AS query,
	e.statement AS normalized_query_hash,
	e.database, e.duration_ns, e.frames, e.first_frame, e.last_frame, e.transactions, e.page_size,
	CAST(iif(e.event = 1 OR e.page_size = 0, NULL,
	    iif(iif(e.event = 0, e.last_frame, e.frames) = 0, 0, 32 + iif(e.event = 0, e.last_frame, e.frames) * (e.page_size + 24))) AS INTEGER) AS wal_bytes
FROM wal_events AS e
LEFT JOIN processes AS p ON p.id = e.process
LEFT JOIN queries AS q ON q.id = e.query;

-- What SQLite counted of the page caches of connections, once a second while statements are logged, and at their end.
CREATE VIEW connections AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', c.timestamp_ns / 1000000000, 'unixepoch') || printf('.%06d', c.timestamp_ns % 1000000000 / 1000) AS event_time_microseconds,
	c.timestamp_ns, p.hostname, p.process_id, c.thread_id,
	c.session AS session_id,
	c.database,
	iif(c.is_closing, 'closing', 'open') AS state,
	c.hits AS page_cache_hits,
	c.misses AS page_cache_misses,
	c.writes AS page_cache_writes,
	c.spills AS page_cache_spills,
	c.cache_bytes AS page_cache_bytes,
	c.database_bytes
FROM connection_counts AS c
LEFT JOIN processes AS p ON p.id = c.process;

-- Pages and bytes that statements read and wrote, by b-tree, in sums of about a second.
CREATE VIEW page_io AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', i.start_ns / 1000000000, 'unixepoch') || printf('.%06d', i.start_ns % 1000000000 / 1000) AS event_time_microseconds,
	i.start_ns AS timestamp_ns, p.hostname, p.process_id, i.thread_id,
	i.database, i.btree, i.table_name,
	i.root AS root_page,
	CASE i.kind
		WHEN 1 THEN 'table' WHEN 2 THEN 'without rowid' WHEN 3 THEN 'index' WHEN 4 THEN 'shadow' WHEN 5 THEN 'schema'
		WHEN 6 THEN 'overflow' WHEN 7 THEN 'freelist' WHEN 8 THEN 'pointer map' WHEN 9 THEN 'journal' WHEN 10 THEN 'wal header'
		ELSE 'unknown'
	END AS kind,
	i.statement AS normalized_query_hash,
	i.reads, i.read_bytes, i.wal_read_bytes, i.writes, i.rewritten, i.wal_bytes, i.database_bytes, i.journal_bytes, i.journal_read_bytes
FROM page_sums AS i
LEFT JOIN processes AS p ON p.id = i.process;

-- How many statements connections had prepared and not finalized, if there were many. Memory
-- is an estimate from a sample of them.
CREATE VIEW open_statements AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', o.timestamp_ns / 1000000000, 'unixepoch') || printf('.%06d', o.timestamp_ns % 1000000000 / 1000) AS event_time_microseconds,
	o.timestamp_ns, p.hostname, p.process_id, o.thread_id,
	o.session AS session_id,
	o.database, o.statements,
	CAST(nullif(o.bytes, 0) * (1.0 * o.statements / o.measured) AS INTEGER) AS memory_usage,
	o.measured, o.texts,
	o.text AS query,
	o.statement AS normalized_query_hash,
	CAST(o.text_statements * (1.0 * o.statements / o.measured) AS INTEGER) AS query_statements,
	CAST(nullif(o.text_bytes, 0) * (1.0 * o.statements / o.measured) AS INTEGER) AS query_memory_usage,
	o.cache_bytes AS page_cache_bytes
FROM open_statement_counts AS o
LEFT JOIN processes AS p ON p.id = o.process;

-- The checkpoints: who ran each, what it copied and left, what stopped it, and where its
-- time went. The holder of the lock that stopped it is the statement that took the lock,
-- or, in another process, the first statement of its oldest transaction then on the database.
CREATE VIEW checkpoints AS
SELECT
	strftime('%Y-%m-%d %H:%M:%S', timestamp_ns / 1000000000, 'unixepoch') || printf('.%06d', timestamp_ns % 1000000000 / 1000) AS event_time_microseconds,
	id, timestamp_ns, hostname, process_id, thread_id, session_id, query_id, query, normalized_query_hash, caller, database, mode, origin,
	frames, frames_before, frames_copied, frames_left,
	iif(is_stopped, obstacle, '') AS stopped_by,
	iif(is_stopped, '', obstacle) AS waited_for,
	result, duration_ns, cpu_time_ns, write_ns, wal_sync_ns, database_sync_ns, lock_wait_ns, bytes, page_size,
	read_mark, read_mark_frame, holder_query_id, holder_query, holder_session_id, holder_process_id, holder_thread_id,
	holder_transaction, holder_since_ns
FROM (
	SELECT *,
		result <> 'SQLITE_OK' OR coalesce(frames_left > 0, 0) AS is_stopped,
		CASE kind
			WHEN 0 THEN iif(coalesce(frames_left > 0, 0), 'not known', '')
			WHEN 1 THEN 'another checkpoint'
			WHEN 2 THEN 'a writer'
			WHEN 3 THEN iif(read_mark = 0, 'a reader of the database file alone', 'read mark ' || read_mark || ' at frame ' || read_mark_frame)
			ELSE 'readers of the WAL'
		END || CASE
			WHEN kind = 0 THEN ''
			WHEN holder_process_id = 0 THEN ': another process'
			ELSE ': ' || iif(holder_query = '', '', holder_query || ' (') || 'process ' || holder_process_id
			     || iif(holder_program = '', '', ' ' || holder_program)
			     || iif(holder_thread_id, ', thread ' || holder_thread_id, '')
			     || iif(holder_since_ns AND timestamp_ns + duration_ns > holder_since_ns,
			            printf(', open for %.3f s', (timestamp_ns + duration_ns - holder_since_ns) / 1e9), '')
			     || iif(holder_query = '', '', ')')
		END AS obstacle
	FROM (
		SELECT
			c.id,
			c.start_ns AS timestamp_ns,
			p.hostname, p.process_id, c.thread_id,
			c.session AS session_id,
			q.query_id,
			c.text AS query,
			c.statement AS normalized_query_hash,
			coalesce(b.caller, '') AS caller,
			c.database,
			CASE c.mode WHEN 0 THEN 'PASSIVE' WHEN 1 THEN 'FULL' WHEN 2 THEN 'RESTART' ELSE 'TRUNCATE' END AS mode,
			CASE c.origin WHEN 0 THEN 'commit' WHEN 1 THEN 'PRAGMA' WHEN 2 THEN 'function' ELSE 'close' END AS origin,
			c.frames,
			c.copied_before AS frames_before,
			CAST(c.copied_after - c.copied_before AS INTEGER) AS frames_copied,
			CAST(c.frames - c.copied_after AS INTEGER) AS frames_left,
			c.obstacle AS kind,
			CASE c.result WHEN 0 THEN 'SQLITE_OK' WHEN 5 THEN 'SQLITE_BUSY' ELSE 'error ' || c.result END AS result,
			c.duration_ns,
			c.cpu_ns AS cpu_time_ns,
			c.write_ns, c.wal_sync_ns, c.database_sync_ns,
			c.stopped_ns AS lock_wait_ns,
			c.bytes, c.page_size,
			CAST(iif(c.obstacle = 3, c.mark, NULL) AS INTEGER) AS read_mark,
			CAST(iif(c.obstacle = 3 AND c.mark, c.mark_frame, NULL) AS INTEGER) AS read_mark_frame,
			coalesce(h.query_id, fq.query_id) AS holder_query_id,
			coalesce(nullif(c.holder_query, ''), ft.first_query, '') AS holder_query,
			CAST(coalesce(ft.session, c.holder_session) AS INTEGER) AS holder_session_id,
			c.holder_process_id,
			CAST(coalesce(ft.thread_id, c.holder_thread_id) AS INTEGER) AS holder_thread_id,
			CAST(coalesce(ft.number, c.holder_transaction) AS INTEGER) AS holder_transaction,
			CAST(coalesce(nullif(c.holder_since_ns, 0), ft.start_ns, 0) AS INTEGER) AS holder_since_ns,
			coalesce((SELECT iif(script <> '', script, executable) FROM processes AS r
				WHERE r.process_id = c.holder_process_id AND r.hostname = p.hostname ORDER BY r.id DESC LIMIT 1), '') AS holder_program
		FROM wal_checkpoints AS c
		LEFT JOIN processes AS p ON p.id = c.process
		LEFT JOIN queries AS q ON q.id = c.query
		LEFT JOIN call_stacks AS b ON b.id = q.call_stack
		LEFT JOIN queries AS h ON h.id = c.holder
		LEFT JOIN transactions AS ft ON ft.id = (
			SELECT t.id FROM processes AS r JOIN transactions AS t ON t.process = r.id
			WHERE c.holder_process_id <> 0 AND c.holder_session = 0
			AND r.process_id = c.holder_process_id AND r.hostname = p.hostname AND r.id <> c.process AND t.database = c.database
			AND t.start_ns <= c.start_ns + c.duration_ns AND t.start_ns + t.duration_ns >= c.start_ns
			ORDER BY t.start_ns, t.id LIMIT 1)
		LEFT JOIN queries AS fq ON fq.id = ft.first));

-- Which statements appended the frames that a checkpoint copied: `checkpoint` is a row of
-- wal_checkpoints. Frames of processes that are not recorded are missing.
CREATE VIEW checkpoint_frames AS
SELECT checkpoint, text AS query, statement AS normalized_query_hash, sum(min(frames, min(last_frame, copied_after) - max(first_frame - 1, copied_before))) AS frames
FROM (
	SELECT c.id AS checkpoint, e.*, copied_before, copied_after
	FROM (
		SELECT *, coalesce((SELECT max(start_ns) FROM wal_events AS r WHERE r.database = c.database AND r.start_ns <= c.start_ns AND r.event = 1), 0) AS begin_ns
		FROM wal_checkpoints AS c WHERE copied_after > copied_before) AS c
	JOIN wal_events AS e ON e.database = c.database AND e.start_ns BETWEEN c.begin_ns AND c.start_ns
	WHERE e.event = 0 AND e.last_frame > c.copied_before AND e.first_frame <= c.copied_after)
GROUP BY checkpoint, iif(statement, statement, text);

-- Each WAL in a few sentences: how large it was, what kept it from being copied and reset,
-- and who paid for checkpoints.
CREATE VIEW wal_story AS
WITH
sizes AS MATERIALIZED (
	SELECT database, max(frames) AS frames, max(page_size) AS page_size
	FROM (SELECT database, max(last_frame, iif(event = 0, 0, frames)) AS frames, page_size FROM wal_events
	      UNION ALL SELECT database, coalesce(frames, 0), page_size FROM wal_checkpoints)
	GROUP BY database),
runs AS MATERIALIZED (SELECT * FROM checkpoints),
sums AS MATERIALIZED (
	SELECT database, count(*) AS checkpoints, sum(stopped_by <> '') AS stopped, sum(stopped_by LIKE 'another checkpoint%') AS busy, sum(duration_ns) AS checkpoint_ns,
	       sum(iif(origin = 'commit', duration_ns, 0)) AS commit_ns, sum(origin = 'commit') AS commits
	FROM runs GROUP BY database),
pins AS MATERIALIZED (
	SELECT database, count(*) AS pinned, min(iif(holder_since_ns, holder_since_ns, timestamp_ns)) AS since_ns,
	       max(timestamp_ns + duration_ns) AS until_ns, max(frames_left) AS frames_left,
	       min(read_mark_frame) AS frame, max(printf('%020d', timestamp_ns) || stopped_by) AS newest
	FROM runs WHERE read_mark IS NOT NULL AND frames_left > 0
	GROUP BY database, hostname, holder_process_id, holder_session_id, holder_transaction),
worst_pins AS MATERIALIZED (SELECT *, max(until_ns - since_ns) AS pinned_ns FROM pins GROUP BY database),
payers AS MATERIALIZED (
	SELECT database, query, mode, origin, duration_ns, frames_copied, max(duration_ns) AS worst_ns FROM runs WHERE frames_copied > 0 GROUP BY database)
SELECT
	s.database,
	s.frames AS largest_frames,
	iif(s.page_size, iif(s.frames, 32 + s.frames * (s.page_size + 24), 0), NULL) AS largest_bytes,
	coalesce(c.checkpoints, 0) AS checkpoints,
	coalesce(c.stopped, 0) AS checkpoints_stopped,
	coalesce(c.checkpoint_ns, 0) AS checkpoint_ns,
	coalesce(c.commit_ns, 0) AS commit_checkpoint_ns,
	w.pinned_ns AS longest_pin_ns,
	w.frame AS pinned_frame,
	substr(w.newest, 21) AS pinned_by,
	s.database || '-wal had ' || printf('%,d', s.frames) || ' frames'
	|| iif(s.page_size, printf(' (%.1f MB)', (32 + s.frames * (s.page_size + 24)) / 1e6), '') || ' at most.'
	|| CASE
		WHEN c.database IS NULL THEN ' No checkpoint was seen.'
		ELSE printf(' %d of %d checkpoints stopped early', c.stopped, c.checkpoints) || iif(c.busy, printf(', %d of them because another checkpoint was running', c.busy), '') || '.'
	END
	|| iif(w.database IS NULL, '', printf(' The longest pin lasted %.3f s. It stopped %d checkpoint%s, leaving up to %,d frames: ',
		w.pinned_ns / 1e9, w.pinned, iif(w.pinned = 1, '', 's'), w.frames_left) || substr(w.newest, 21)
		|| '. When that reader ends its transaction, the next checkpoint copies these frames.')
	|| iif(y.database IS NULL, '', printf(' The longest checkpoint that copied frames took %.3f s for %,d frames: ', y.worst_ns / 1e9, y.frames_copied)
		|| CASE y.origin WHEN 'commit' THEN 'inside ' WHEN 'close' THEN 'at the close of a connection, ' ELSE '' END || y.query || '.')
	|| iif(coalesce(c.commits, 0) = 0, '', printf(' Commits ran %d checkpoint%s, for %.3f s in all; PRAGMA wal_autocheckpoint = 0 and checkpoints in a thread of their own would take that time from them.',
		c.commits, iif(c.commits = 1, '', 's'), c.commit_ns / 1e9)) AS story
FROM sizes AS s
LEFT JOIN sums AS c ON c.database = s.database
LEFT JOIN worst_pins AS w ON w.database = s.database
LEFT JOIN payers AS y ON y.database = s.database;

CREATE VIEW query_log AS
SELECT
	q.query_id,
	i.query_id AS initial_query_id,
	CASE WHEN NOT q.finished THEN 'QueryStart' WHEN q.exception_code = 0 THEN 'QueryFinish' ELSE 'ExceptionWhileProcessing' END AS type,
	strftime('%Y-%m-%d %H:%M:%S', q.query_start_ns / 1000000000, 'unixepoch') || printf('.%06d', q.query_start_ns % 1000000000 / 1000) AS query_start_time_microseconds,
	q.query_duration_ns, q.cpu_time_ns, x.query, x.normalized_query_hash, q.database, q.thread_id,
	q.exception_code, q.exception, q.result_rows, q.vm_steps, q.fullscan_steps, q.sorts, q.autoindexes,
	q.memory_usage, q.samples_cpu, q.samples_real, q.weight_cpu, q.weight_real, q.samples_dropped,
	q.samples_truncated, q.prepare_time_ns, q.worker_cpu_time_ns,
	coalesce(l.version, '') AS library_version,
	coalesce(l.path, '') AS library_path,
	q.expanded_query,
	q.session AS session_id,
	coalesce(p.query_id, '') AS parent_query_id,
	CAST(coalesce(q.execution_ns, q.query_duration_ns) AS INTEGER) AS execution_time_ns,
	q.threads,
	CASE WHEN h.id IS NULL THEN coalesce(g.labels, '{}') WHEN g.id IS NULL THEN h.labels ELSE (SELECT '{' || group_concat(v.member) || '}' FROM label_values AS v WHERE v.labels = h.id OR (v.labels = g.id AND NOT EXISTS (SELECT 1 FROM label_values AS w WHERE w.labels = h.id AND w.key = v.key))) END AS labels,
	coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), g.otel_trace_id, '') AS otel_trace_id,
	coalesce(c.otel_span_id, nullif(h.otel_span_id, ''), g.otel_span_id, '') AS otel_span_id,
	q.lock_wait_ns, q.io_read_ns, q.io_write_ns, q.io_sync_ns, q.mutex_wait_ns, q.sleep_ns, q.other_wait_ns,
	q.run_delay_ns, q.rest_ns, q.reads, q.read_bytes, q.writes, q.write_bytes, q.syncs, q.major_faults,
	q.minor_faults, q.voluntary_switches, q.involuntary_switches,
	CAST(coalesce(u.plan_hash, 0) AS INTEGER) AS plan_hash,
	q.worker_wait_ns, q.profiler_cost_ns,
	coalesce(b.caller, '') AS caller,
	coalesce(b.caller_function, '') AS caller_function,
	q.call_stack AS call_stack_id,
	q.execution_time_error_ns, o.process_id,
	o.executable AS program
FROM queries AS q
LEFT JOIN queries AS i ON i.id = q.initial
LEFT JOIN queries AS p ON p.id = q.parent
LEFT JOIN statements AS x ON x.id = q.statement
LEFT JOIN libraries AS l ON l.id = q.library
LEFT JOIN label_sets AS g ON g.id = q.labels
LEFT JOIN label_sets AS h ON h.id = x.labels
LEFT JOIN trace_contexts AS c ON c.id = q.context
LEFT JOIN programs AS u ON u.id = q.program
LEFT JOIN call_stacks AS b ON b.id = q.call_stack
LEFT JOIN processes AS o ON o.id = q.process
WHERE q.finished OR q.statement;

-- The statements of each program, with all their runs: see statement_counters.
CREATE VIEW statement_stats AS
SELECT
	c.normalized_query_hash, x.query, c.database, c.program, c.calls, c.errors, c.rows, c.execution_time_ns,
	c.cpu_time_ns, c.cpu_time_estimated_ns, c.duration_ns, c.min_ns, c.max_ns,
	'[' || c.runs_0 || ',' || c.runs_1 || ',' || c.runs_2 || ',' || c.runs_3 || ',' || c.runs_4 || ',' || c.runs_5 || ',' || c.runs_6 || ',' || c.runs_7 || ',' || c.runs_8 || ',' || c.runs_9 || ',' || c.runs_10 || ',' || c.runs_11 || ',' || c.runs_12 || ',' || c.runs_13 || ',' || c.runs_14 || ',' || c.runs_15 || ',' || c.runs_16 || ',' || c.runs_17 || ',' || c.runs_18 || ',' || c.runs_19 || ',' || c.runs_20 || ',' || c.runs_21 || ',' || c.runs_22 || ',' || c.runs_23 || ']' AS histogram,
	c.execution_time_square, c.cpu_time_square, c.nested_time_ns, c.nested_cpu_time_ns, c.prepares,
	c.prepare_time_ns, c.vm_steps, c.fullscan_steps, c.sorts, c.autoindexes, c.reprepares, c.first_seen_ns,
	c.last_seen_ns
FROM statement_counters AS c
LEFT JOIN statements AS x ON x.id = c.statement;

-- What each trampoline meant, for readers with stacks from other profilers. Its code has 32
-- bytes.
CREATE VIEW label_history AS
SELECT
	p.hostname, p.process_id,
	printf('qp_label_trampoline_%d', u.trampoline) AS trampoline,
	u.address, v.key, v.value, u.from_ns,
	CAST(nullif(u.until_ns, 0) AS INTEGER) AS until_ns,
	CAST(0 AS INTEGER) AS session_id
FROM label_uses AS u
JOIN label_values AS v USING (labels)
JOIN processes AS p ON p.id = u.process;

-- The rows of span_batches, once for each trace that their spans are part of.
CREATE VIEW span_parts AS
SELECT id AS batch, trace_hi, trace_lo, parent FROM span_batches
UNION ALL
SELECT batch, trace_hi, trace_lo, parent FROM span_links;

-- Spans by their numbers. parent, query: 0: none.
CREATE VIEW span_rows AS
SELECT
	p.trace_hi, p.trace_lo,
	b.first_span + e.key AS span,
	(SELECT iif(value, b.first_span + e.key - value, p.parent) FROM json_each(e.value, '$[1]')) AS parent,
	(SELECT value FROM json_each(e.value, '$[0]')) AS site,
	b.start_ns + (SELECT value FROM json_each(e.value, '$[2]')) AS start_ns,
	(SELECT value FROM json_each(e.value, '$[3]')) AS duration_ns,
	coalesce((SELECT value FROM json_each(e.value, '$[4]')), (SELECT value FROM json_each(e.value, '$[3]'))) AS self_ns,
	coalesce((SELECT value FROM json_each(e.value, '$[5]')), 0) AS flags,
	coalesce((SELECT value FROM json_each(e.value, '$[6]')), 0) AS query,
	b.thread,
	b.flags AS batch_flags,
	b.parent AS batch_parent
FROM span_parts AS p
JOIN span_batches AS b ON b.id = p.batch
CROSS JOIN json_each(b.spans) AS e
WHERE e.type = 'array';

-- Columns have the names of ClickHouse's opentelemetry_span_log if it has them.
-- self_time_ns: without the time of children on the same thread. samples: samples in the
-- span but not in its children. cpu_time_ns: of its thread while the span ran, from CPU
-- samples; cpu_time_error_ns: its standard error. waits, wait_time_ns: of its thread during
-- the span, in queries; each wait is a span, too.
CREATE VIEW span_log AS
SELECT
	printf('%016x%016x', r.trace_hi, r.trace_lo) AS trace_id,
	printf('%016x', r.span) AS span_id,
	iif(r.parent, printf('%016x', r.parent), '') AS parent_span_id,
	CAST(trim(s.name || iif(s.wait, (
		SELECT 'wait: ' || w.name || coalesce((SELECT ' (' || o.name || ')' FROM wait_objects AS o WHERE o.object = s.wait >> 8), '')
		FROM wait_causes AS w WHERE w.cause = s.wait & 255), '') || ' ' || coalesce(y.query,
		(SELECT x.query FROM statement_counters AS c JOIN statements AS x ON x.id = c.statement
		 WHERE c.normalized_query_hash = s.statement AND s.statement LIMIT 1), '')) AS TEXT) AS operation_name,
	iif(r.batch_flags & 1 AND r.parent = r.batch_parent, 'SERVER', 'INTERNAL') AS kind,
	CAST(r.start_ns / 1000 AS INTEGER) AS start_time_us,
	CAST((r.start_ns + r.duration_ns) / 1000 AS INTEGER) AS finish_time_us,
	strftime('%Y-%m-%d', (r.start_ns + r.duration_ns) / 1000000000, 'unixepoch') AS finish_date,
	'{' || coalesce((SELECT group_concat(note) FROM span_notes AS n
	                 WHERE n.span = r.span AND NOT n.is_event), '') || '}' AS attribute,
	CAST(t.thread_id AS INTEGER) AS thread_id,
	coalesce(q.query_id, '') AS query_id,
	CASE r.flags & 6 WHEN 2 THEN 'OK' WHEN 4 THEN 'ERROR' ELSE 'UNSET' END AS status,
	CAST(r.flags & 1 AS INTEGER) AS unended,
	CAST(r.start_ns AS INTEGER) AS start_time_ns,
	CAST(r.start_ns + r.duration_ns AS INTEGER) AS finish_time_ns,
	CAST(r.duration_ns AS INTEGER) AS duration_ns,
	CAST(r.self_ns AS INTEGER) AS self_time_ns,
	CAST((SELECT count(*) FROM samples AS m JOIN series AS i ON i.id = m.series
	      WHERE m.timestamp_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns AND i.unit = 'ns'
	        AND (m.span = r.span OR m.span = 0 AND m.query = nullif(r.query, 0))) AS INTEGER) AS samples,
	CAST(coalesce((SELECT sum(m.weight * i.period_ns) FROM samples AS m JOIN series AS i ON i.id = m.series
	      WHERE m.timestamp_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns
	        AND i.thread = r.thread AND i.trace_type = 'CPU'), 0) AS INTEGER) AS cpu_time_ns,
	CAST(coalesce((
		WITH RECURSIVE
		square(v) AS (
			SELECT sum(1.0 * m.weight * i.period_ns * m.weight * i.period_ns)
			FROM samples AS m JOIN series AS i ON i.id = m.series
			WHERE m.timestamp_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns
			  AND i.thread = r.thread AND i.trace_type = 'CPU'),
		root(v, x, n) AS (
			SELECT v, v, 0 FROM square WHERE v > 0
			UNION ALL
			SELECT v, (x + v / x) / 2, n + 1 FROM root WHERE n < 48)
		SELECT x FROM root WHERE n = 48), 0) AS INTEGER) AS cpu_time_error_ns,
	'[' || coalesce((SELECT group_concat(note) FROM span_notes AS n
	                 WHERE n.span = r.span AND n.is_event), '') || ']' AS events,
	s.file,
	CAST(s.line AS INTEGER) AS line,
	s.function,
	CAST(p.process_id AS INTEGER) AS process_id,
	p.hostname, t.thread_name,
	CAST((SELECT count(*) FROM span_waits AS w
	      WHERE w.start_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns AND w.thread = r.thread) AS INTEGER) AS waits,
	CAST(coalesce((SELECT sum(w.duration_ns) FROM span_waits AS w
	      WHERE w.start_ns BETWEEN r.start_ns AND r.start_ns + r.duration_ns AND w.thread = r.thread), 0) AS INTEGER) AS wait_time_ns
FROM span_rows AS r
LEFT JOIN span_sites AS s ON s.id = r.site
LEFT JOIN threads AS t ON t.id = r.thread
LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN queries AS q ON q.id = r.query AND r.query
LEFT JOIN statements AS y ON y.id = q.statement;

-- The traces that have ended, at least in part. root: the name of the first span.
-- duration_ns: from the first begin to the last end of these parts. cpu_time_ns: of the
-- samples in spans. wait_time_ns: of the spans' waits.
CREATE VIEW traces AS
SELECT
	printf('%016x%016x', b.trace_hi, b.trace_lo) AS trace_id,
	CAST(coalesce((
		SELECT trim(s.name || ' ' || coalesce((
			SELECT x.query FROM queries AS q JOIN statements AS x ON x.id = q.statement
			WHERE s.statement AND q.id = (
				SELECT value FROM json_each((SELECT f.spans FROM span_batches AS f WHERE f.id = b.first), '$[0][6]'))), (
			SELECT x.query FROM statement_counters AS c JOIN statements AS x ON x.id = c.statement
			WHERE c.normalized_query_hash = s.statement AND s.statement LIMIT 1), ''))
		FROM span_sites AS s
		WHERE s.id = (SELECT value FROM json_each((SELECT f.spans FROM span_batches AS f WHERE f.id = b.first), '$[0][0]'))),
		'') AS TEXT) AS root,
	strftime('%Y-%m-%d %H:%M:%S', b.start_ns / 1000000000, 'unixepoch') || printf('.%06d', b.start_ns % 1000000000 / 1000) AS start_time_microseconds,
	CAST(b.start_ns AS INTEGER) AS start_time_ns,
	CAST(b.end_ns - b.start_ns AS INTEGER) AS duration_ns,
	CAST((SELECT sum(o.count) FROM span_parts AS p JOIN span_batches AS o ON o.id = p.batch
	      WHERE p.trace_lo = b.trace_lo AND p.trace_hi = b.trace_hi) AS INTEGER) AS spans,
	CAST((SELECT sum(o.statements) FROM span_parts AS p JOIN span_batches AS o ON o.id = p.batch
	      WHERE p.trace_lo = b.trace_lo AND p.trace_hi = b.trace_hi) AS INTEGER) AS statements,
	CAST((SELECT count(DISTINCT o.thread) FROM span_parts AS p JOIN span_batches AS o ON o.id = p.batch
	      WHERE p.trace_lo = b.trace_lo AND p.trace_hi = b.trace_hi) AS INTEGER) AS threads,
	CAST(coalesce((
		SELECT sum(m.weight * i.period_ns)
		FROM span_parts AS p
		JOIN span_batches AS o ON o.id = p.batch
		JOIN samples AS m ON m.timestamp_ns BETWEEN o.start_ns AND o.start_ns + o.lasted_ns
		JOIN series AS i ON i.id = m.series
		WHERE p.trace_lo = b.trace_lo AND p.trace_hi = b.trace_hi AND i.thread = o.thread AND i.trace_type = 'CPU'
		  AND (m.span >= o.first_span AND m.span < o.first_span + 1000
		       -- a span that the flusher made of a run: no sample names it
		       OR m.span = 0 AND m.query AND o.count = 1
		          AND m.query = (SELECT value FROM json_each(o.spans, '$[0][6]')))), 0) AS INTEGER) AS cpu_time_ns,
	CAST((SELECT sum(d) FROM (SELECT max(o.dropped) AS d FROM span_batches AS o
	      WHERE o.trace_lo = b.trace_lo AND o.trace_hi = b.trace_hi GROUP BY o.thread)) AS INTEGER) AS dropped,
	CAST(p.process_id AS INTEGER) AS process_id,
	p.executable AS program,
	CAST(coalesce((
		SELECT sum(w.duration_ns)
		FROM span_parts AS p
		JOIN span_batches AS o ON o.id = p.batch
		JOIN span_waits AS w ON w.start_ns BETWEEN o.start_ns AND o.start_ns + o.lasted_ns
		WHERE p.trace_lo = b.trace_lo AND p.trace_hi = b.trace_hi AND w.span >= o.first_span
		  AND w.span < o.first_span + 1000 AND w.thread = o.thread), 0) AS INTEGER) AS wait_time_ns
FROM (
	SELECT e.trace_hi AS trace_hi, e.trace_lo AS trace_lo, min(e.start_ns) AS start_ns,
	       max(e.start_ns + e.duration_ns) AS end_ns, min(e.thread) AS thread,
	       (SELECT f.id FROM span_batches AS f
	        WHERE f.trace_lo = e.trace_lo AND f.trace_hi = e.trace_hi AND f.flags & 2
	        ORDER BY f.start_ns, f.first_span LIMIT 1) AS first
	FROM span_batches AS e
	WHERE e.duration_ns IS NOT NULL
	GROUP BY e.trace_hi, e.trace_lo) AS b
LEFT JOIN threads AS t ON t.id = b.thread
LEFT JOIN processes AS p ON p.id = t.process;

-- The samples of each batch: late samples name their batch; all others belong to the batch
-- of their process whose range of time contains them.
CREATE VIEW batch_samples AS
SELECT b.id AS batch, s.timestamp_ns AS timestamp_ns
FROM batches AS b
CROSS JOIN samples AS s ON s.timestamp_ns BETWEEN b.first_ns AND b.last_ns
LEFT JOIN late_samples AS l ON l.timestamp_ns = s.timestamp_ns
LEFT JOIN series AS r ON r.id = s.series
LEFT JOIN threads AS t ON t.id = r.thread
WHERE iif(l.batch IS NULL, t.process = b.process AND s.timestamp_ns > b.before_ns, l.batch = b.id);

-- The types of samples in this file.
CREATE VIEW sample_types AS
SELECT trace_type AS name, unit FROM series WHERE trace_type <> 'MemoryFree' GROUP BY trace_type, unit;

-- What each sample represents: `value`, in `unit`. Add values of the same unit only; values
-- in ns are times.
CREATE VIEW sample_values AS
SELECT
	s.timestamp_ns, r.trace_type, s.series, r.thread, s.query,
	s.stack AS stack_id,
	s.truncated, s.weight, r.period_ns,
	s.size + s.weight * r.period_ns AS value,
	r.unit, s.labels, s.wait, s.wait_ns, s.opcode
FROM samples AS s
JOIN series AS r ON r.id = s.series;

-- Values by stack, so that names are looked up after the samples are summed up. time_ns is
-- the value if it is a time.
CREATE VIEW stack_times AS
SELECT
	trace_type,
	stack_id,
	CAST(count(*) AS INTEGER) AS samples,
	CAST(iif(unit = 'ns', sum(value), NULL) AS INTEGER) AS time_ns,
	CAST(sum(value) AS INTEGER) AS value,
	unit
FROM sample_values
GROUP BY stack_id, trace_type, unit;

-- Ready-made reports, by type, the largest value first. self: in the function itself;
-- total: including the functions that it called. A function counts once per stack, however
-- often it recurs there. All code of a module without names is one function, "(module)".
-- Columns in ms are NULL if the unit is not ns.
CREATE VIEW top_functions AS
WITH
times AS MATERIALIZED (SELECT * FROM stack_times),
wholes AS MATERIALIZED (SELECT trace_type, unit, sum(value) AS whole FROM times GROUP BY 1, 2),
functions AS MATERIALIZED (
	SELECT stack_id, function_id, module_id, max(frame = 0 AND level = 0) AS is_leaf
	FROM stack_frames
	GROUP BY 1, 2, 3),
sums AS MATERIALIZED (
	SELECT trace_type, unit, function_id, module_id, sum(value * is_leaf) AS self, sum(value) AS total
	FROM functions JOIN times USING (stack_id)
	GROUP BY 1, 2, 3, 4)
SELECT
	trace_type,
	CAST(round(100.0 * self / whole, 2) AS REAL) AS self_percent,
	CAST(round(100.0 * total / whole, 2) AS REAL) AS total_percent,
	CAST(iif(unit = 'ns', round(self / 1e6, 3), NULL) AS REAL) AS self_ms,
	CAST(iif(unit = 'ns', round(total / 1e6, 3), NULL) AS REAL) AS total_ms,
	coalesce(n.name,
		'(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')',
		'(no module)') AS function,
	coalesce(m.path, '') AS module,
	CAST(self AS INTEGER) AS self_value,
	CAST(total AS INTEGER) AS total_value,
	unit
FROM sums
JOIN wholes USING (trace_type, unit)
LEFT JOIN names AS n ON n.id = function_id
LEFT JOIN modules AS m ON m.id = module_id
ORDER BY self DESC, total DESC, function;

-- Stacks with the same functions count as one, whatever their addresses in the functions.
CREATE VIEW top_stacks AS
WITH
times AS MATERIALIZED (SELECT * FROM stack_times),
wholes AS MATERIALIZED (SELECT trace_type, unit, sum(value) AS whole FROM times GROUP BY 1, 2),
texts AS MATERIALIZED (
	SELECT id AS stack_id,
	       (SELECT group_concat(function, ' < ') FROM stack_frames WHERE stack_id = stacks.id) AS stack
	FROM stacks)
SELECT
	trace_type,
	CAST(round(100.0 * sum(value) / whole, 2) AS REAL) AS percent,
	CAST(iif(unit = 'ns', round(sum(value) / 1e6, 3), NULL) AS REAL) AS ms,
	CAST(sum(samples) AS INTEGER) AS samples,
	coalesce(stack, '') AS stack,
	CAST(sum(value) AS INTEGER) AS value,
	unit
FROM times LEFT JOIN texts USING (stack_id) JOIN wholes USING (trace_type, unit)
GROUP BY trace_type, unit, stack
ORDER BY sum(value) DESC, stack;

-- Bursts: the runs of query_log that belong together. Runs with the same trace (a
-- traceparent, or OpenTelemetry's context) or the same label request_id in a process are one
-- burst. The other runs of a thread are one burst until 10 ms pass from the end of a run to
-- the start of the next. Nested runs are part of the enclosing run. thread_id is NULL if
-- there are several threads. program_time_ns: the time in which no run of the burst was
-- inside SQLite; 0 if there are several threads. most: the statement with the most runs.
CREATE VIEW bursts AS
WITH
runs AS MATERIALIZED (
	SELECT q.process AS process, q.thread_id AS thread_id, q.query_start_ns AS start_ns, q.query_start_ns + q.query_duration_ns AS end_ns,
	       coalesce(q.execution_ns, q.query_duration_ns) AS execution_ns, x.normalized_query_hash AS hash, x.query AS query, q.call_stack AS call_stack,
	       coalesce(c.otel_trace_id, nullif(h.otel_trace_id, ''), nullif(g.otel_trace_id, ''),
	                (SELECT v.value || '' FROM label_values AS v WHERE v.labels = x.labels AND v.key = 'request_id'),
	                (SELECT v.value || '' FROM label_values AS v WHERE v.labels = q.labels AND v.key = 'request_id'), '') AS request
	FROM queries AS q
	LEFT JOIN statements AS x ON x.id = q.statement
	LEFT JOIN label_sets AS g ON g.id = q.labels
	LEFT JOIN label_sets AS h ON h.id = x.labels
	LEFT JOIN trace_contexts AS c ON c.id = q.context
	WHERE q.finished AND NOT q.parent),
marked AS MATERIALIZED (
	SELECT *, coalesce(start_ns > 10000000 + max(end_ns) OVER (
		PARTITION BY process, thread_id, request ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 1)
		AND request = '' AS begins
	FROM runs),
numbered AS MATERIALIZED (
	SELECT *, iif(request = '', thread_id, 0) AS thread,
	       sum(begins) OVER (PARTITION BY process, thread_id, request ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING) AS number
	FROM marked),
texts AS MATERIALIZED (
	SELECT process, thread, request, number, count(*) AS runs, min(query) AS query,
	       row_number() OVER (PARTITION BY process, thread, request, number ORDER BY count(*) DESC, hash) AS place
	FROM numbered GROUP BY process, thread, request, number, hash)
SELECT
	p.hostname, p.process_id,
	CAST(iif(min(n.thread_id) = max(n.thread_id), n.thread_id, NULL) AS INTEGER) AS thread_id,
	n.request,
	CAST(min(n.start_ns) AS INTEGER) AS first_ns,
	CAST(max(n.end_ns) AS INTEGER) AS last_ns,
	CAST(count(*) AS INTEGER) AS statements,
	CAST(count(DISTINCT n.hash) AS INTEGER) AS distinct_statements,
	CAST(count(DISTINCT nullif(n.call_stack, 0)) AS INTEGER) AS call_sites,
	CAST(sum(n.execution_ns) AS INTEGER) AS execution_time_ns,
	CAST(max(max(n.end_ns) - min(n.start_ns) - sum(n.execution_ns), 0) AS INTEGER) AS program_time_ns,
	CAST(t.runs AS INTEGER) AS most_runs,
	coalesce(t.query, '') AS most
FROM numbered AS n
LEFT JOIN processes AS p ON p.id = n.process
LEFT JOIN texts AS t ON t.place = 1 AND t.process = n.process AND t.thread = n.thread AND t.request = n.request AND t.number = n.number
GROUP BY n.process, n.thread, n.request, n.number;

-- The sums of all runs of a statement, over all programs and databases. Statements that
-- differ only in literals count as one. Older versions did not count runs; a file that only
-- they wrote has the runs of query_log. Samples are those of the runs in query_log, `logged_runs`.
CREATE VIEW top_queries AS
WITH
logged AS MATERIALIZED (
	SELECT normalized_query_hash, count(*) AS runs, sum(query_duration_ns) AS ns, sum(cpu_time_ns) AS cpu_ns,
	       max(query_duration_ns) AS max_ns, sum(samples_cpu) AS samples_cpu, sum(samples_real) AS samples_real,
	       sum(result_rows) AS result_rows, min(query) AS query
	FROM query_log
	GROUP BY normalized_query_hash),
counted AS MATERIALIZED (
	SELECT normalized_query_hash, sum(calls) AS runs, sum(execution_time_ns) AS ns, sum(cpu_time_ns) AS cpu_ns,
	       max(max_ns) AS max_ns, sum(rows) AS result_rows, min(query) AS query
	FROM statement_stats
	GROUP BY normalized_query_hash
	UNION ALL
	SELECT normalized_query_hash, runs, ns, cpu_ns, max_ns, result_rows, query
	FROM logged WHERE NOT EXISTS (SELECT 1 FROM statement_counters))
SELECT
	c.normalized_query_hash,
	CAST(c.runs AS INTEGER) AS runs,
	CAST(round(c.ns / 1e6, 3) AS REAL) AS ms,
	CAST(round(c.cpu_ns / 1e6, 3) AS REAL) AS cpu_ms,
	CAST(round(c.max_ns / 1e6, 3) AS REAL) AS max_ms,
	CAST(coalesce(l.samples_cpu, 0) AS INTEGER) AS samples_cpu,
	CAST(coalesce(l.samples_real, 0) AS INTEGER) AS samples_real,
	CAST(c.result_rows AS INTEGER) AS result_rows,
	c.query,
	CAST(coalesce(l.runs, 0) AS INTEGER) AS logged_runs
FROM counted AS c
LEFT JOIN logged AS l ON l.normalized_query_hash = c.normalized_query_hash
ORDER BY c.cpu_ns DESC, c.ns DESC;

-- top_functions for one run of a query (`run`: its row in queries), or for all runs of the
-- statements that differ from the text of row `statement` in literals only. Percentages
-- refer to these samples. The two views that follow select rows of this one. So that
-- SQLite reads the samples of the selected rows only, a correlated subquery returns the
-- functions of a row as a JSON array. Each text in it has six numbers of 20 digits: self,
-- total, self of all, function, module, and a series of the type.
CREATE VIEW function_sums AS
SELECT
	c.run, c.statement, r.trace_type,
	CAST(round(100.0 * substr(t.value, 1, 20) / substr(t.value, 41, 20), 2) AS REAL) AS self_percent,
	CAST(round(100.0 * substr(t.value, 21, 20) / substr(t.value, 41, 20), 2) AS REAL) AS total_percent,
	CAST(iif(r.unit = 'ns', round(substr(t.value, 1, 20) / 1e6, 3), NULL) AS REAL) AS self_ms,
	CAST(iif(r.unit = 'ns', round(substr(t.value, 21, 20) / 1e6, 3), NULL) AS REAL) AS total_ms,
	coalesce(n.name,
		'(' || substr(m.path, 1 + length(rtrim(m.path, replace(m.path, '/', '')))) || ')',
		'(no module)') AS function,
	coalesce(m.path, '') AS module,
	CAST(substr(t.value, 1, 20) AS INTEGER) AS self_value,
	CAST(substr(t.value, 21, 20) AS INTEGER) AS total_value,
	r.unit
FROM (
	SELECT id AS run, NULL AS statement FROM queries
	UNION ALL
	SELECT NULL, id FROM statements) AS c
CROSS JOIN json_each((
	SELECT '[' || group_concat(printf('"%020d%020d%020d%020d%020d%020d"',
	                                  self, total, whole, function_id, module_id, series)) || ']'
	FROM (
		SELECT function_id, module_id, sum(value * is_leaf) AS self, sum(value) AS total,
		       sum(sum(value * is_leaf)) OVER (PARTITION BY trace_type, unit) AS whole, max(series) AS series
		FROM (
			SELECT trace_type, unit, series, value, function_id, module_id,
			       max(frame = 0 AND level = 0) AS is_leaf
			FROM (
				SELECT trace_type, unit, stack_id, sum(value) AS value, max(series) AS series
				FROM queries AS q
				CROSS JOIN sample_values AS s
				  ON s.timestamp_ns BETWEEN q.first_ns AND q.last_ns AND s.query = q.id
				WHERE q.id IN (
					SELECT c.run
					UNION ALL
					SELECT u.id
					FROM statements AS x
					JOIN statements AS y USING (normalized_query_hash)
					JOIN queries AS u ON u.statement = y.id
					WHERE x.id = c.statement)
				GROUP BY 1, 2, 3)
			JOIN stack_frames USING (stack_id)
			GROUP BY trace_type, unit, stack_id, function_id, module_id)
		GROUP BY trace_type, unit, function_id, module_id))) AS t
JOIN series AS r ON r.id = substr(t.value, 101, 20) + 0
LEFT JOIN names AS n ON n.id = substr(t.value, 61, 20) + 0
LEFT JOIN modules AS m ON m.id = substr(t.value, 81, 20) + 0;

-- WHERE query_id = ….
CREATE VIEW query_functions AS
SELECT
	q.query_id,
	CAST(coalesce(x.normalized_query_hash, 0) AS INTEGER) AS normalized_query_hash,
	coalesce(x.query, '') AS query,
	f.trace_type, f.self_percent, f.total_percent, f.self_ms, f.total_ms, f.function, f.module, f.self_value,
	f.total_value, f.unit
FROM queries AS q
LEFT JOIN statements AS x ON x.id = q.statement
CROSS JOIN function_sums AS f ON f.run = q.id
ORDER BY self_value DESC, total_value DESC, function;

-- WHERE normalized_query_hash = …, or WHERE query LIKE …; query is one of the statement's
-- texts.
CREATE VIEW statement_functions AS
SELECT
	x.normalized_query_hash, x.query, f.trace_type, f.self_percent, f.total_percent, f.self_ms, f.total_ms,
	f.function, f.module, f.self_value, f.total_value, f.unit
FROM (
	SELECT normalized_query_hash, min(query) AS query, min(id) AS id
	FROM statements GROUP BY normalized_query_hash) AS x
CROSS JOIN function_sums AS f ON f.statement = x.id
ORDER BY self_value DESC, total_value DESC, function;

-- The plans of each statement over time, with their runs (see statement_parts) and the mean time of a run. A statement
-- with several plans has changed its plan, or SQLite planned it for several patterns of LIKE or GLOB. If runs were not counted by plan, `runs` is NULL, and the other columns
-- describe the logged runs.
CREATE VIEW statement_plans AS
WITH
logged AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, min(x.query) AS query, g.plan_hash AS plan_hash, count(*) AS runs,
	       avg(coalesce(q.execution_ns, q.query_duration_ns)) AS ns, min(q.query_start_ns) AS first_ns,
	       max(q.query_start_ns) AS last_ns
	FROM queries AS q
	JOIN programs AS g ON g.id = q.program
	JOIN statements AS x ON x.id = q.statement
	GROUP BY x.normalized_query_hash, g.plan_hash),
layouts AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, g.layout AS layout, max(g.plan_hash) AS plan_hash
	FROM programs AS g JOIN statements AS x ON x.id = g.statement
	WHERE g.layout GROUP BY x.normalized_query_hash, g.layout),
counted AS MATERIALIZED (
	SELECT p.normalized_query_hash AS hash, l.plan_hash AS plan_hash, sum(p.calls) AS runs, sum(p.execution_time_ns) AS ns,
	       min(p.first_seen_ns) AS first_ns, max(p.last_seen_ns) AS last_ns
	FROM statement_parts AS p JOIN layouts AS l ON l.hash = p.normalized_query_hash AND l.layout = p.layout
	WHERE p.calls GROUP BY p.normalized_query_hash, l.plan_hash)
SELECT
	l.hash AS normalized_query_hash,
	l.query, l.plan_hash, p.plan,
	l.runs AS logged_runs,
	CAST(round(coalesce(1.0 * c.ns / c.runs, l.ns) / 1e6, 4) AS REAL) AS ms,
	strftime('%Y-%m-%d %H:%M:%S', coalesce(c.first_ns, l.first_ns) / 1000000000, 'unixepoch') AS first_seen,
	strftime('%Y-%m-%d %H:%M:%S', coalesce(c.last_ns, l.last_ns) / 1000000000, 'unixepoch') AS last_seen,
	CAST(c.runs AS INTEGER) AS runs
FROM logged AS l
JOIN plans AS p ON p.plan_hash = l.plan_hash
LEFT JOIN counted AS c ON c.hash = l.hash AND c.plan_hash = l.plan_hash
ORDER BY l.hash, coalesce(c.first_ns, l.first_ns);

-- Statements by the line of the program that called them (see call_stacks); caller '': not known. Only logged runs have a
-- caller. runs: the runs of the line. The other runs of the statement are divided among its lines by the samples: a sample
-- of a run that took a tenth of the period represents ten such runs (of CPU time, if it was sampled). runs_error: one
-- standard error of runs, 0 if all runs were logged, otherwise at least a quarter of the runs that were not logged, because
-- the tick that takes a sample also makes its run longer, by an unknown time that matters most in short runs. Both are NULL if they are not known,
-- because short runs have no samples or the file does not count runs. cpu_ms, wall_ms: the sums of the samples.
CREATE VIEW statement_callers AS
WITH
types AS MATERIALIZED (
	SELECT coalesce(max(trace_type = 'CPU'), 0) AS has_cpu, coalesce(max(trace_type = 'OffCPU'), 0) AS has_waits FROM series),
sampled AS MATERIALIZED (
	SELECT run, samples, cpu, wall, iif(has_cpu, cpu, wall) AS value, iif(has_cpu, cpu_spread, wall_spread) AS spread
	FROM types, (
		SELECT q.id AS run, count(*) AS samples, sum(value) FILTER (WHERE trace_type = 'CPU') AS cpu,
		       sum(1.0 * value * value) FILTER (WHERE trace_type = 'CPU') AS cpu_spread,
		       sum(value) FILTER (WHERE is_wall) AS wall,
		       sum(1.0 * value * iif(trace_type = 'OffCPU', period_ns, value)) FILTER (WHERE is_wall) AS wall_spread
		FROM (SELECT *, iif(has_waits AND (has_cpu OR trace_type <> 'Real'), trace_type IN ('CPU', 'OffCPU'), trace_type = 'Real') AS is_wall
		      FROM sample_values, types) AS s
		JOIN queries AS q ON q.id = s.query AND s.timestamp_ns BETWEEN q.first_ns AND q.last_ns
		WHERE q.id <> 0 GROUP BY 1)),
parts AS MATERIALIZED (
	SELECT x.normalized_query_hash AS hash, min(x.query) AS query, coalesce(b.caller, '') AS caller,
	       coalesce(b.caller_function, '') AS caller_function, sum(finished) AS logged, total(samples) AS samples,
	       total(cpu) AS cpu, total(wall) AS wall, total(value / ns) AS weight, total(spread / ns / ns) AS square
	FROM (SELECT *, iif(finished, nullif(1.0 * iif(has_cpu, cpu_time_ns, coalesce(execution_ns, query_duration_ns)) + prepare_time_ns, 0), NULL) AS ns
	      FROM queries, types) AS q
	JOIN statements AS x ON x.id = q.statement
	LEFT JOIN call_stacks AS b ON b.id = q.call_stack
	LEFT JOIN sampled AS s ON s.run = q.id
	GROUP BY 1, 3, 4),
shares AS MATERIALIZED (
	SELECT *, max(weight - logged, 0) AS part, sum(max(weight - logged, 0)) OVER statement AS whole,
	       sum(weight) OVER statement AS weights, sum(square) OVER statement AS squares, sum(logged) OVER statement AS all_logged
	FROM parts WINDOW statement AS (PARTITION BY hash)),
counts AS MATERIALIZED (
	SELECT normalized_query_hash AS hash, sum(calls) AS calls FROM statement_counters GROUP BY 1),
counted AS (
	SELECT s.*, max(calls - all_logged, 0) AS rest, part / nullif(whole, 0) AS share, weights * weights / nullif(squares, 0) AS n
	FROM shares AS s LEFT JOIN counts USING (hash))
SELECT
	hash AS normalized_query_hash,
	query,
	caller,
	caller_function,
	CAST(logged AS INTEGER) AS logged_runs,
	CAST(round(logged + iif(rest = 0, 0, rest * share)) AS INTEGER) AS runs,
	CAST(round(iif(rest = 0, 0, rest * sqrt(
		max((square + share * share * (squares - 2 * square)) / weights / weights,
		    (share * n + 1) * (n - share * n + 1) / ((n + 2) * (n + 2) * (n + 3)))
		+ 1.0 / 16))) AS INTEGER) AS runs_error,
	CAST(samples AS INTEGER) AS samples,
	CAST(round(cpu / 1e6, 3) AS REAL) AS cpu_ms,
	CAST(round(wall / 1e6, 3) AS REAL) AS wall_ms
FROM counted
ORDER BY iif(cpu > 0, cpu, wall) DESC, logged DESC, caller;

-- WHERE query_id = …: the time of a run in each node of its plan. node 0: the statement's own work; node NULL, without a
-- detail: not known, or outside its program. total: including the nodes below. Percentages refer to the run's CPU samples;
-- error_ms is one standard error of total_ms. wait_ms: wall time in addition to CPU time, if waits or wall time were
-- sampled. loops, rows: for node 0 the rows of the statement's result; NULL if they were not counted.
-- The sums of a run are a JSON array, as in function_sums.
CREATE VIEW plan_times AS
SELECT
	q.query_id,
	CAST(coalesce(x.normalized_query_hash, 0) AS INTEGER) AS normalized_query_hash,
	CAST(g.plan_hash AS INTEGER) AS plan_hash,
	CAST(nullif(substr(t.value, 1, 20) + 0, -1) AS INTEGER) AS node,
	CAST(n.parent AS INTEGER) AS parent,
	coalesce(n.detail, iif(substr(t.value, 1, 20) + 0 = 0, '(statement)', '')) AS detail,
	CAST(round(substr(t.value, 21, 20) / 1e6, 3) AS REAL) AS self_ms,
	CAST(round(substr(t.value, 41, 20) / 1e6, 3) AS REAL) AS total_ms,
	CAST(round(100.0 * substr(t.value, 21, 20) / nullif(substr(t.value, 61, 20) + 0, 0), 2) AS REAL) AS self_percent,
	CAST(round(100.0 * substr(t.value, 41, 20) / nullif(substr(t.value, 61, 20) + 0, 0), 2) AS REAL) AS total_percent,
	CAST(round(substr(t.value, 81, 20) / 1e6, 3) AS REAL) AS error_ms,
	CAST(round(max(0, substr(t.value, 101, 20) - substr(t.value, 21, 20)) / 1e6, 3) AS REAL) AS wait_ms,
	CAST(substr(t.value, 121, 20) AS INTEGER) AS samples,
	q.session AS session_id,
	coalesce(n.compared, '') AS compared,
	CAST((SELECT loops FROM plan_loops AS l WHERE l.query = q.id AND l.node = n.node) AS INTEGER) AS loops,
	CAST(iif(substr(t.value, 1, 20) + 0 = 0, q.result_rows,
	         (SELECT rows FROM plan_loops AS l WHERE l.query = q.id AND l.node = n.node)) AS INTEGER) AS rows
FROM queries AS q
JOIN programs AS g ON g.id = q.program
LEFT JOIN statements AS x ON x.id = q.statement
CROSS JOIN json_each((
	WITH RECURSIVE
	-- The sums of each node, repeated for each of its enclosing nodes. A plan has fewer than 50 levels, but a stranger's
	-- file may have a circle. A join with a common table expression would compute it again for each row.
	sums (node, level, cpu, real, square, samples) AS (
		SELECT coalesce(o.node, -1), 0,
		       sum(iif(r.trace_type = 'CPU', s.weight * r.period_ns, 0)),
		       -- wall time: both types together if waits were sampled
		       iif(sum(r.trace_type = 'OffCPU'), sum(iif(r.trace_type IN ('CPU', 'OffCPU'), s.weight * r.period_ns, 0)),
		           sum(iif(r.trace_type = 'Real', s.weight * r.period_ns, 0))),
		       sum(iif(r.trace_type = 'CPU', 1.0 * s.weight * r.period_ns * s.weight * r.period_ns, 0)),
		       sum(r.trace_type = 'CPU')
		FROM samples AS s
		JOIN series AS r ON r.id = s.series
		LEFT JOIN program_opcodes AS o ON o.program = q.program AND o.address = nullif(s.opcode, 0)
		WHERE s.timestamp_ns BETWEEN q.first_ns AND q.last_ns AND s.query = q.id
		GROUP BY 1
		UNION ALL
		SELECT p.parent, level + 1, cpu, real, square, samples
		FROM sums JOIN plan_nodes AS p ON p.program = q.program AND p.node = sums.node
		WHERE p.parent <> 0 AND level < 50)
	SELECT '[' || group_concat(printf('"%020d%020d%020d%020d%020d%020d%020d"', node, self, total,
	                                  whole, error, wall, samples)) || ']'
	FROM (
		SELECT node,
		       sum(iif(level = 0, cpu, 0)) AS self,
		       sum(cpu) AS total,
		       sum(sum(iif(level = 0, cpu, 0))) OVER () AS whole,
		       CAST(sqrt(sum(square)) AS INTEGER) AS error,
		       sum(iif(level = 0, real, 0)) AS wall,
		       sum(iif(level = 0, samples, 0)) AS samples
		FROM (SELECT * FROM sums UNION ALL SELECT node, 1, 0, 0, 0, 0 FROM plan_nodes WHERE program = q.program)
		GROUP BY node
		HAVING node > 0 OR sum(cpu + real) > 0))) AS t
LEFT JOIN plan_nodes AS n ON n.program = q.program AND n.node = substr(t.value, 1, 20) + 0
ORDER BY q.query_start_ns, node IS NULL, node;
