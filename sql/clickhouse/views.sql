-- SPDX-License-Identifier: Apache-2.0
-- The views for people: each row once, however often it arrived, with the columns of ClickHouse's own tables in
-- addition to queryprof's. After tables.sql, on a cluster also by distributed.sed.

CREATE VIEW IF NOT EXISTS trace_log AS
SELECT
	toDate(intDiv(timestamp_ns, 1000000000)) AS event_date,
	toDateTime(intDiv(timestamp_ns, 1000000000)) AS event_time,
	fromUnixTimestamp64Micro(toInt64(intDiv(timestamp_ns, 1000))) AS event_time_microseconds, -- newer
	*
FROM trace_log_rows FINAL;

CREATE VIEW IF NOT EXISTS query_log AS
SELECT
	toDate(intDiv(query_start_ns, 1000000000)) AS event_date,
	toDateTime(intDiv(query_start_ns, 1000000000)) AS query_start_time,
	fromUnixTimestamp64Micro(toInt64(intDiv(query_start_ns, 1000))) AS query_start_time_microseconds, -- newer
	*
FROM query_log_rows FINAL;

-- The newest state of each; statement_stats_hours has one for each hour.
CREATE VIEW IF NOT EXISTS statement_stats_hours AS
SELECT toDateTime(intDiv(hour_ns, 1000000000)) AS hour, *
FROM statement_stats_rows FINAL;

CREATE VIEW IF NOT EXISTS statement_stats AS
SELECT *
FROM statement_stats_hours
ORDER BY hour_ns DESC
LIMIT 1 BY file, normalized_query_hash, database, program;

CREATE VIEW IF NOT EXISTS span_log AS
SELECT toDateTime(intDiv(start_time_ns, 1000000000)) AS start_time, *
FROM span_log_rows FINAL;

CREATE VIEW IF NOT EXISTS lock_waits AS
SELECT toDateTime(intDiv(timestamp_ns, 1000000000)) AS event_time, *
FROM lock_waits_rows FINAL;

CREATE VIEW IF NOT EXISTS checkpoints AS
SELECT toDateTime(intDiv(timestamp_ns, 1000000000)) AS event_time, *
FROM checkpoints_rows FINAL;

CREATE VIEW IF NOT EXISTS wal_log AS
SELECT toDateTime(intDiv(timestamp_ns, 1000000000)) AS event_time, *
FROM wal_log_rows FINAL;

CREATE VIEW IF NOT EXISTS modules AS SELECT * FROM modules_rows FINAL;

CREATE VIEW IF NOT EXISTS losses AS SELECT * FROM losses_rows FINAL;
