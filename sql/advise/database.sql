-- SPDX-License-Identifier: Apache-2.0
-- The recorded name of the database ?1: the same path, or else the same file name, or else the name with the most runs. One
-- row: the name; whether it is certainly this database (of the third kind, only if it is the only one); the seconds from the
-- first run to the last; whether one of its connections has enforced foreign keys.
SELECT database,
       database = ?1 OR fileName(database) = fileName(?1) AND count(*) FILTER (WHERE fileName(database) = fileName(?1)) OVER () = 1
       OR count(*) OVER () = 1 AS is_it,
       (last_ns - first_ns) / 1000000000,
       EXISTS (SELECT 1 FROM statement_counters AS c JOIN statements AS s ON s.id = c.statement
               WHERE replace(s.query, ' ', '') LIKE 'PRAGMA%foreign_keys=%' AND replace(s.query, ' ', '') NOT LIKE '%=0%'
                 AND s.query NOT LIKE '%off%' AND s.query NOT LIKE '%false%')
FROM (SELECT database, sum(calls) AS runs, min(first_seen_ns) AS first_ns, max(last_seen_ns) AS last_ns
      FROM statement_counters WHERE normalized_query_hash <> 0 AND database <> '' GROUP BY 1)
ORDER BY database = ?1 DESC, is_it DESC, runs DESC
LIMIT 1;
