-- SPDX-License-Identifier: Apache-2.0
-- On a cluster: what `queryprof push` sends to and the views read, over the tables of tables.sql.
-- The server that gets a query forwards it. All rows of a file go to one shard, where rows that arrived twice meet.

CREATE TABLE IF NOT EXISTS trace_log_rows ON CLUSTER '{cluster}' AS trace_log_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'trace_log_local', file);

CREATE TABLE IF NOT EXISTS query_log_rows ON CLUSTER '{cluster}' AS query_log_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'query_log_local', file);

CREATE TABLE IF NOT EXISTS statement_stats_rows ON CLUSTER '{cluster}' AS statement_stats_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'statement_stats_local', file);

CREATE TABLE IF NOT EXISTS span_log_rows ON CLUSTER '{cluster}' AS span_log_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'span_log_local', file);

CREATE TABLE IF NOT EXISTS lock_waits_rows ON CLUSTER '{cluster}' AS lock_waits_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'lock_waits_local', file);

CREATE TABLE IF NOT EXISTS checkpoints_rows ON CLUSTER '{cluster}' AS checkpoints_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'checkpoints_local', file);

CREATE TABLE IF NOT EXISTS wal_log_rows ON CLUSTER '{cluster}' AS wal_log_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'wal_log_local', file);

CREATE TABLE IF NOT EXISTS modules_rows ON CLUSTER '{cluster}' AS modules_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'modules_local', file);

CREATE TABLE IF NOT EXISTS losses_rows ON CLUSTER '{cluster}' AS losses_local
ENGINE = Distributed('{cluster}', currentDatabase(), 'losses_local', file);
