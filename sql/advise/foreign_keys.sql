-- SPDX-License-Identifier: Apache-2.0
-- The foreign keys: table, parent, columns in quotes.
SELECT child, parent, group_concat('"' || replace(column, '"', '""') || '"', ', ')
FROM (SELECT t.name AS child, k."table" AS parent, k.id AS id, k."from" AS column
      FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
      WHERE t.type = 'table' ORDER BY t.name, k.id, k.seq)
GROUP BY child, parent, id;
