-- SPDX-License-Identifier: Apache-2.0
-- Whether an index of the table ?1 begins with the columns ?2, or the first of them is the table's rowid. The columns are in
-- quotes and separated by commas.
SELECT EXISTS (
	SELECT 1 FROM pragma_index_list(?1) AS l
	WHERE NOT l.partial AND substr((SELECT group_concat(iif(name IS NULL, '?', '"' || replace(name, '"', '""') || '"') || iif("desc", ' DESC', ''), ', ')
	                                FROM (SELECT * FROM pragma_index_xinfo(l.name) WHERE key ORDER BY seqno)) || ', ',
	                               1, length(?2) + 2) = ?2 || ', ' COLLATE NOCASE)
OR EXISTS (
	SELECT 1 FROM pragma_table_info(?1)
	WHERE pk = 1 AND type = 'INTEGER' COLLATE NOCASE AND (SELECT max(pk) FROM pragma_table_info(?1)) = 1
	  AND substr(?2, 1, length(name) + 2) = '"' || name || '"' COLLATE NOCASE);
