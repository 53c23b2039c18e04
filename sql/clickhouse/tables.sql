-- SPDX-License-Identifier: Apache-2.0
-- The tables that `queryprof push` sends to, on one node of ClickHouse 20.8 or later:
--
--	clickhouse-client --database profiles --multiquery < tables.sql
--	clickhouse-client --database profiles --multiquery < views.sql
--
-- On a cluster, whose name is each server's macro {cluster}:
--
--	sed -f cluster.sed tables.sql | clickhouse-client --database profiles --multiquery
--	sed -f distributed.sed tables.sql | clickhouse-client --database profiles --multiquery
--	sed -f on_cluster.sed views.sql | clickhouse-client --database profiles --multiquery
--
-- Servers before 20.8 lack types, codecs and TTL: pipe the text through `sed -f old_server.sed` first. Lines that
-- only newer servers support end with "-- newer".
--
-- A row has a key that identifies it in its file, and `version` if it can change; `file` identifies the file. So a
-- row that arrives twice is one row: ReplacingMergeTree merges them eventually, and the views, which read with FINAL,
-- immediately. Do not read the tables ending in _rows for other purposes. All rows of a file are on one shard.
--
-- The TTL of each table is the number of days to keep rows, by their time; rows that are already older when they are
-- sent are removed immediately. ALTER TABLE … MODIFY TTL changes it.

CREATE TABLE IF NOT EXISTS trace_log_rows (
	file UInt64,
	timestamp_ns UInt64 CODEC(T64, ZSTD(1)),
	hostname LowCardinality(String),
	service LowCardinality(String),
	program LowCardinality(String),
	process_id UInt32,
	trace_type LowCardinality(String),
	cpu_id UInt32,
	thread_id UInt64,
	thread_name LowCardinality(String),
	query_id String CODEC(ZSTD(1)),
	normalized_query_hash UInt64,
	query LowCardinality(String),
	database LowCardinality(String),
	stack_id UInt64 CODEC(DoubleDelta, ZSTD(1)),
	trace Array(UInt64) CODEC(ZSTD(3)),
	symbols Array(LowCardinality(String)) CODEC(ZSTD(3)),
	lines Array(LowCardinality(String)) CODEC(ZSTD(3)),
	truncated UInt8,
	weight UInt64,
	period_ns UInt64,
	value Int64,
	unit LowCardinality(String),
	size Int64,
	labels Map(LowCardinality(String), String) CODEC(ZSTD(1)),
	otel_trace_id String CODEC(ZSTD(1)),
	otel_span_id String CODEC(ZSTD(1)),
	span_id String CODEC(ZSTD(1)),
	opcode UInt32,
	wait_ns UInt64,
	wait_cause LowCardinality(String),
	wait_object LowCardinality(String),
	outside LowCardinality(String),
	transaction_number UInt32,
	ptr UInt64
) ENGINE = ReplacingMergeTree
PARTITION BY intDiv(timestamp_ns, 86400000000000)
ORDER BY (intDiv(timestamp_ns, 3600000000000), normalized_query_hash, file, stack_id, timestamp_ns)
TTL toDateTime(intDiv(timestamp_ns, 1000000000)) + INTERVAL 30 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

CREATE TABLE IF NOT EXISTS query_log_rows (
	file UInt64,
	run UInt64,
	version UInt64,
	query_start_ns UInt64 CODEC(T64, ZSTD(1)),
	hostname LowCardinality(String),
	service LowCardinality(String),
	program LowCardinality(String),
	process_id UInt32,
	query_id String CODEC(ZSTD(1)),
	initial_query_id String CODEC(ZSTD(1)),
	parent_query_id String CODEC(ZSTD(1)),
	type LowCardinality(String),
	normalized_query_hash UInt64,
	query String CODEC(ZSTD(1)),
	database LowCardinality(String),
	thread_id UInt64,
	exception_code Int32,
	exception String,
	query_duration_ns UInt64,
	execution_time_ns UInt64,
	cpu_time_ns UInt64,
	worker_cpu_time_ns UInt64,
	prepare_time_ns UInt64,
	lock_wait_ns UInt64,
	io_read_ns UInt64,
	io_write_ns UInt64,
	io_sync_ns UInt64,
	mutex_wait_ns UInt64,
	sleep_ns UInt64,
	other_wait_ns UInt64,
	run_delay_ns UInt64,
	rest_ns UInt64,
	result_rows UInt64,
	read_bytes UInt64,
	write_bytes UInt64,
	memory_usage Int64,
	vm_steps UInt64,
	fullscan_steps UInt64,
	sorts UInt64,
	autoindexes UInt64,
	samples_cpu UInt64,
	samples_real UInt64,
	samples_dropped UInt64,
	samples_truncated UInt64,
	library_version LowCardinality(String),
	plan_hash UInt64,
	caller LowCardinality(String),
	caller_function LowCardinality(String),
	labels Map(LowCardinality(String), String) CODEC(ZSTD(1)),
	otel_trace_id String,
	otel_span_id String
) ENGINE = ReplacingMergeTree(version)
PARTITION BY intDiv(query_start_ns, 86400000000000)
ORDER BY (normalized_query_hash, file, run)
TTL toDateTime(intDiv(query_start_ns, 1000000000)) + INTERVAL 30 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

-- The sums over all runs of a statement since its file began, at the end of each hour; the difference from the
-- previous hour is the hour's own.
CREATE TABLE IF NOT EXISTS statement_stats_rows (
	file UInt64,
	hour_ns UInt64,
	version UInt64,
	hostname LowCardinality(String),
	service LowCardinality(String),
	program LowCardinality(String),
	database LowCardinality(String),
	normalized_query_hash UInt64,
	query String CODEC(ZSTD(1)),
	calls UInt64,
	errors UInt64,
	rows UInt64,
	execution_time_ns UInt64,
	cpu_time_ns UInt64,
	duration_ns UInt64,
	min_ns UInt64,
	max_ns UInt64,
	execution_time_square Float64,
	cpu_time_square Float64,
	nested_time_ns UInt64,
	nested_cpu_time_ns UInt64,
	prepares UInt64,
	prepare_time_ns UInt64,
	vm_steps UInt64,
	fullscan_steps UInt64,
	sorts UInt64,
	autoindexes UInt64,
	first_seen_ns UInt64,
	last_seen_ns UInt64,
	histogram Array(UInt64)
) ENGINE = ReplacingMergeTree(version)
PARTITION BY intDiv(hour_ns, 86400000000000)
ORDER BY (normalized_query_hash, file, database, program, hour_ns)
TTL toDateTime(intDiv(hour_ns, 1000000000)) + INTERVAL 400 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

CREATE TABLE IF NOT EXISTS span_log_rows (
	file UInt64,
	start_time_ns UInt64 CODEC(T64, ZSTD(1)),
	finish_time_ns UInt64 CODEC(T64, ZSTD(1)),
	hostname LowCardinality(String),
	service LowCardinality(String),
	process_id UInt32,
	thread_id UInt64,
	thread_name LowCardinality(String),
	trace_id String CODEC(ZSTD(1)),
	span_id String CODEC(ZSTD(1)),
	parent_span_id String CODEC(ZSTD(1)),
	operation_name LowCardinality(String),
	kind LowCardinality(String),
	status LowCardinality(String),
	unended UInt8,
	query_id String CODEC(ZSTD(1)),
	attribute Map(LowCardinality(String), String) CODEC(ZSTD(1)),
	source_file LowCardinality(String),
	source_line UInt32
) ENGINE = ReplacingMergeTree(finish_time_ns)
PARTITION BY intDiv(start_time_ns, 86400000000000)
ORDER BY (intDiv(start_time_ns, 3600000000000), operation_name, trace_id, span_id, file)
TTL toDateTime(intDiv(start_time_ns, 1000000000)) + INTERVAL 30 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

CREATE TABLE IF NOT EXISTS lock_waits_rows (
	file UInt64,
	wait UInt64,
	version UInt64,
	timestamp_ns UInt64,
	hostname LowCardinality(String),
	service LowCardinality(String),
	process_id UInt32,
	thread_id UInt64,
	query_id String,
	query String CODEC(ZSTD(1)),
	database LowCardinality(String),
	lock LowCardinality(String),
	wait_ns UInt64,
	outcome LowCardinality(String),
	holder_query_id String,
	holder_query String CODEC(ZSTD(1)),
	holder_process_id UInt32,
	holder_thread_id UInt64
) ENGINE = ReplacingMergeTree(version)
PARTITION BY intDiv(timestamp_ns, 86400000000000)
ORDER BY (file, wait)
TTL toDateTime(intDiv(timestamp_ns, 1000000000)) + INTERVAL 90 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

CREATE TABLE IF NOT EXISTS checkpoints_rows (
	file UInt64,
	checkpoint UInt64,
	timestamp_ns UInt64,
	hostname LowCardinality(String),
	service LowCardinality(String),
	process_id UInt32,
	thread_id UInt64,
	query_id String,
	query String CODEC(ZSTD(1)),
	normalized_query_hash UInt64,
	caller LowCardinality(String),
	database LowCardinality(String),
	mode LowCardinality(String),
	origin LowCardinality(String),
	frames UInt64,
	frames_copied UInt64,
	frames_left UInt64,
	stopped_by String CODEC(ZSTD(1)),
	waited_for String CODEC(ZSTD(1)),
	result LowCardinality(String),
	duration_ns UInt64,
	cpu_time_ns UInt64,
	write_ns UInt64,
	wal_sync_ns UInt64,
	database_sync_ns UInt64,
	lock_wait_ns UInt64,
	bytes UInt64,
	holder_query String CODEC(ZSTD(1)),
	holder_process_id UInt32
) ENGINE = ReplacingMergeTree
PARTITION BY intDiv(timestamp_ns, 86400000000000)
ORDER BY (file, checkpoint)
TTL toDateTime(intDiv(timestamp_ns, 1000000000)) + INTERVAL 90 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

CREATE TABLE IF NOT EXISTS wal_log_rows (
	file UInt64,
	change UInt64,
	timestamp_ns UInt64,
	hostname LowCardinality(String),
	service LowCardinality(String),
	process_id UInt32,
	thread_id UInt64,
	event LowCardinality(String),
	query String CODEC(ZSTD(1)),
	normalized_query_hash UInt64,
	database LowCardinality(String),
	duration_ns UInt64,
	frames UInt64,
	first_frame UInt64,
	last_frame UInt64,
	transactions UInt64,
	page_size UInt32
) ENGINE = ReplacingMergeTree
PARTITION BY intDiv(timestamp_ns, 86400000000000)
ORDER BY (file, change)
TTL toDateTime(intDiv(timestamp_ns, 1000000000)) + INTERVAL 90 DAY -- newer
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

-- The file's address space, to which trace_log's addresses belong.
CREATE TABLE IF NOT EXISTS modules_rows (
	file UInt64,
	module UInt64,
	hostname LowCardinality(String),
	path String,
	build_id String,
	base UInt64,
	extent UInt64,
	elf_start UInt64
) ENGINE = ReplacingMergeTree
ORDER BY (file, module)
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;

-- Data that was never recorded, and data that was removed from a file before it could be sent. `position`, the place
-- in the file where push noticed the removal, is 0 for the former.
CREATE TABLE IF NOT EXISTS losses_rows (
	file UInt64,
	process UInt64,
	reason LowCardinality(String),
	first_ns UInt64,
	position UInt64,
	version UInt64,
	last_ns UInt64,
	hostname LowCardinality(String),
	service LowCardinality(String),
	process_id UInt32,
	samples UInt64,
	refusals UInt64
) ENGINE = ReplacingMergeTree(version)
ORDER BY (file, process, reason, first_ns, position)
SETTINGS non_replicated_deduplication_window = 1000 -- newer
;
