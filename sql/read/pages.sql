-- SPDX-License-Identifier: Apache-2.0
-- The rows of page_io that are asked for, and their sums, in temporary tables. Read this before the other files pages_*.sql, and after
-- page_walk() (src/cmd/read/page_walk.h), which makes temp.walk, temp.walked_trees and pageOwner().
--
-- page_databases: all bytes of each database in that time: shares are shares of these, whichever table or statement is asked for.
-- page_trees: a row for each b-tree of a database, and for each kind of pages without one. tree is its number, what its name for people,
-- known 0 if the owner of the pages is not known. readers: the statements whose plans read this index; NULL if it is not an index.
-- page_texts: the statements whose plans are known, and others that may read an index.
-- The database that was walked, as the recording calls it: its folder may have another name there.
DROP TABLE IF EXISTS temp.page_walked_database;
CREATE TEMP TABLE page_walked_database AS
SELECT d.database AS database, w.page_size AS page_size
FROM (SELECT DISTINCT database FROM page_io) AS d JOIN temp.walk AS w
WHERE d.database = w.database OR fileName(d.database) = fileName(w.database)
ORDER BY d.database = w.database DESC, d.database LIMIT 1;

DROP TABLE IF EXISTS temp.page_walked;
CREATE TEMP TABLE page_walked AS
SELECT d.database, page_size, root_page, name, t."table" AS "table", pages,
       CASE WHEN root_page = 1 THEN 'schema' WHEN type = 'index' THEN 'index'
            WHEN EXISTS (SELECT 1 FROM temp.walked_trees AS v WHERE v.root_page = 0 AND t.name LIKE replace(v.name, '_', '\_') || '\_%' ESCAPE '\') THEN 'shadow'
            WHEN is_index THEN 'without rowid' ELSE 'table' END AS kind
FROM temp.walked_trees AS t JOIN temp.page_walked_database AS d WHERE root_page > 0;

-- root_page of a page without a known owner is its own number, if it is one page.
DROP TABLE IF EXISTS temp.page_all;
CREATE TEMP TABLE page_all AS
WITH owned AS (
	SELECT *, CASE WHEN btree = '' AND root_page > 0 AND database = (SELECT database FROM temp.page_walked_database)
	               THEN iif(kind IN ('unknown', 'overflow'), pageOwner(root_page), root_page) END AS owner
	FROM page_io),
named AS (
	SELECT o.*, coalesce(w.name, btree) AS owner_name, coalesce(w."table", table_name) AS owner_table,
	       CASE WHEN owner = -1 THEN 'freelist' WHEN owner = -2 THEN 'pointer map'
	            WHEN o.kind IN ('unknown', 'overflow') THEN coalesce(w.kind, o.kind) ELSE o.kind END AS owner_kind
	FROM owned AS o LEFT JOIN temp.page_walked AS w ON w.root_page = o.owner)
SELECT database, owner_table AS "table", owner_name AS btree, owner_kind AS kind, iif(owner > 0, owner, root_page) AS root_page,
       normalized_query_hash AS hash, timestamp_ns, reads, writes, rewritten, read_bytes, wal_read_bytes,
       wal_bytes, database_bytes, journal_bytes, journal_read_bytes,
       (:table IS NULL OR owner_table = :table COLLATE NOCASE OR owner_name = :table COLLATE NOCASE)
       AND (:statement IS NULL OR printf('%016x', normalized_query_hash) = :statement) AS is_chosen,
       read_bytes + wal_read_bytes + journal_read_bytes AS bytes_read, wal_bytes + database_bytes + journal_bytes AS bytes_written
FROM named
WHERE (:since IS NULL OR timestamp_ns >= CAST(:since AS INTEGER)) AND (:until IS NULL OR timestamp_ns < CAST(:until AS INTEGER))
  AND (:database IS NULL OR database = :database OR fileName(database) = :database);

DROP TABLE IF EXISTS temp.page_databases;
CREATE TEMP TABLE page_databases AS
SELECT database, sum(wal_bytes) AS wal_bytes, sum(database_bytes) AS database_bytes, sum(journal_bytes) AS journal_bytes, sum(bytes_read) AS bytes_read,
       sum(bytes_written) AS bytes_written, sum(writes) AS writes, sum(writes - rewritten) AS pages,
       total((bytes_read + bytes_written) * (btree = '' AND kind IN ('unknown', 'overflow'))) AS unknown_bytes
FROM temp.page_all GROUP BY database;

DROP VIEW IF EXISTS temp.page_rows;
CREATE TEMP VIEW page_rows AS SELECT * FROM temp.page_all WHERE is_chosen;

-- The indexes that plans read: by any statement whose plan is in the file. An index of the same name in another database counts, too.
DROP TABLE IF EXISTS temp.page_readers;
CREATE TEMP TABLE page_readers AS
WITH used AS MATERIALIZED (
	SELECT DISTINCT program, lower(substr(rest, 1, instr(rest || ' (', ' (') - 1)) AS name
	FROM (SELECT program, substr(detail, instr(detail, ' INDEX ') + 7) AS rest FROM plan_nodes
	      WHERE detail LIKE '% USING INDEX %' OR detail LIKE '% USING COVERING INDEX %'))
SELECT u.name AS name, count(DISTINCT x.normalized_query_hash) AS readers
FROM used AS u JOIN programs AS g ON g.id = u.program JOIN statements AS x ON x.id = g.statement
GROUP BY u.name;

DROP TABLE IF EXISTS temp.page_texts;
CREATE TEMP TABLE page_texts AS
WITH known AS MATERIALIZED (SELECT DISTINCT x.normalized_query_hash AS hash FROM programs AS g JOIN statements AS x ON x.id = g.statement)
SELECT (SELECT count(*) FROM known) AS texts,
       -- Others, as COMMIT, read no index by a plan.
       (SELECT count(DISTINCT c.normalized_query_hash) FROM statement_counters AS c JOIN statements AS x ON x.id = c.statement
        WHERE c.normalized_query_hash <> 0 AND c.normalized_query_hash NOT IN (SELECT hash FROM known)
          AND upper(substr(ltrim(x.query, ' (' || char(9, 10, 13)), 1, 4)) IN ('SELE', 'INSE', 'UPDA', 'DELE', 'REPL', 'WITH', 'VALU', 'EXPL')) AS unknown_texts;

DROP TABLE IF EXISTS temp.page_trees;
CREATE TEMP TABLE page_trees AS
WITH sums AS (
	SELECT database, btree, max("table") AS "table", coalesce(max(iif(kind <> 'overflow', kind, NULL)), 'overflow') AS kind,
	       max(iif(btree = '', 0, root_page)) AS root_page, sum(reads) AS reads, sum(writes) AS writes, sum(writes - rewritten) AS pages, sum(read_bytes) AS read_bytes,
	       sum(wal_read_bytes) AS wal_read_bytes, sum(wal_bytes) AS wal_bytes, sum(database_bytes) AS database_bytes,
	       sum(journal_bytes) AS journal_bytes, sum(bytes_read) AS bytes_read, sum(bytes_written) AS bytes_written
		FROM temp.page_rows
	-- An overflow page belongs to its b-tree. Other pages have none.
	GROUP BY database, btree, iif(btree = '', kind, ''))
SELECT row_number() OVER (ORDER BY bytes_read + bytes_written DESC, database, btree, kind) AS tree, s.*,
       CASE WHEN btree = '' THEN iif(kind IN ('unknown', 'overflow'), 'not known', kind)
            WHEN kind = 'index' THEN 'index ' || btree || ' of ' || "table"
            WHEN kind = 'shadow' AND "table" NOT IN ('', btree) THEN 'shadow table ' || btree || ' of ' || "table"
            WHEN kind = 'shadow' THEN 'shadow table ' || btree
            WHEN kind = 'schema' THEN 'schema'
            ELSE 'table ' || btree END AS what,
       btree <> '' OR kind NOT IN ('unknown', 'overflow') AS is_known,
       iif(kind = 'index', coalesce((SELECT readers FROM temp.page_readers WHERE name = lower(btree)), 0), NULL) AS readers
FROM sums AS s;

-- Indexes that SQLite made for UNIQUE or PRIMARY KEY are read for these whatever plans say.
DROP TABLE IF EXISTS temp.page_indexes;
CREATE TEMP TABLE page_indexes AS
SELECT t.*, btree LIKE 'sqlite\_autoindex\_%' ESCAPE '\' AS is_automatic,
       iif(d.wal_bytes, 1.0 * t.wal_bytes / d.wal_bytes, 1.0 * t.bytes_written / max(d.bytes_written, 1)) AS share,
       iif(d.wal_bytes, 'the WAL', 'the database and its journal') AS target
FROM temp.page_trees AS t JOIN temp.page_databases AS d ON d.database = t.database
WHERE kind = 'index' AND t.writes > 0;
