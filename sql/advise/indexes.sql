-- SPDX-License-Identifier: Apache-2.0
-- The indexes that only make statements faster: not unique, and not for a foreign key. Name, table, SQL.
SELECT s.name, s.tbl_name, s.sql
FROM sqlite_schema AS s JOIN pragma_index_list(s.tbl_name) AS l ON l.name = s.name
WHERE s.type = 'index' AND s.sql IS NOT NULL AND NOT l."unique"
  AND NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list(s.tbl_name) AS k JOIN pragma_index_info(s.name) AS i ON i.seqno = 0
                  WHERE k."from" = i.name COLLATE NOCASE);
