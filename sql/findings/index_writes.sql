-- SPDX-License-Identifier: Apache-2.0
-- An index for which much is written, and which no recorded statement reads. The WAL counts if there is one. Statements that
-- write whole trees (VACUUM, CREATE INDEX, REINDEX) are left out.
WITH used AS MATERIALIZED ( -- by any statement whose plan is in the file
	SELECT DISTINCT lower(substr(rest, 1, instr(rest || ' (', ' (') - 1)) AS name
	FROM (SELECT substr(detail, instr(detail, ' INDEX ') + 7) AS rest FROM plan_nodes
	      WHERE detail LIKE '% USING INDEX %' OR detail LIKE '% USING COVERING INDEX %')),
texts AS MATERIALIZED (
	SELECT count(DISTINCT x.normalized_query_hash) AS known FROM programs AS g JOIN statements AS x ON x.id = g.statement),
changes AS MATERIALIZED (
	SELECT * FROM page_io
	WHERE normalized_query_hash NOT IN (SELECT normalized_query_hash FROM statements WHERE query LIKE 'VACUUM%' OR query LIKE 'CREATE %INDEX%' OR query LIKE 'REINDEX%')),
databases AS MATERIALIZED (
	SELECT database, sum(wal_bytes) AS wal, sum(wal_bytes + database_bytes + journal_bytes) AS written FROM page_io GROUP BY database),
trees AS MATERIALIZED (
	SELECT database, btree, table_name, max(kind = 'index') AS is_index, sum(wal_bytes) AS wal, sum(wal_bytes + database_bytes + journal_bytes) AS written,
	       sum(writes) AS writes, sum(writes - rewritten) AS pages,
	       max(wal_bytes + journal_bytes > 0 AND normalized_query_hash IN (SELECT hash FROM temp.finding_statements)) AS is_selected
	FROM changes WHERE btree <> '' GROUP BY database, btree)
SELECT (SELECT normalized_query_hash FROM changes AS p -- the statement that writes most of it, as COMMIT
        WHERE p.database = t.database AND p.btree = t.btree AND normalized_query_hash IN (SELECT hash FROM temp.finding_statements)
        GROUP BY 1 ORDER BY sum(wal_bytes + database_bytes + journal_bytes) DESC, 1 LIMIT 1) AS hash, NULL AS saved, NULL AS error, t.btree AS "index", t.table_name AS "table", fileName(d.database) AS database,
       printf('%.0f', 100.0 * iif(d.wal, t.wal, t.written) / iif(d.wal, d.wal, d.written)) AS share,
       iif(d.wal, 'the WAL', 'the database and its journal') AS target, printf('%.1f', iif(d.wal, t.wal, t.written) / 1e6) AS mb,
       CASE WHEN t.pages > 0 THEN iif(t.writes < 1.5 * t.pages, 'each of its pages once', printf('each of its pages %.0f times', 1.0 * t.writes / t.pages)) ELSE 'how often each page is not known' END AS times, texts.known AS texts
FROM trees AS t JOIN databases AS d ON d.database = t.database JOIN texts
WHERE is_index AND is_selected AND texts.known > 0 AND lower(t.btree) NOT IN (SELECT name FROM used) AND t.btree NOT LIKE 'sqlite\_autoindex\_%' ESCAPE '\'
  AND iif(d.wal, t.wal, t.written) >= 0.15 * iif(d.wal, d.wal, d.written) AND iif(d.wal, t.wal, t.written) >= 1000000
ORDER BY t.written DESC;
