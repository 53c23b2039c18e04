-- SPDX-License-Identifier: Apache-2.0
-- Each database in one sentence or a few; then each index that takes a tenth of its writes. After pages.sql.
SELECT database || ': '
       || iif(wal_bytes, printf('%.1f MB written to the WAL, ', wal_bytes / 1e6), '')
       || printf('%.1f MB written to the database, ', database_bytes / 1e6)
       || iif(journal_bytes >= 50000, printf('%.1f MB written to its journal, ', journal_bytes / 1e6), '')
       || printf('%.1f MB read.', bytes_read / 1e6)
       || iif(pages > 0, printf(' Each page that was written was written %.1f times.', 1.0 * writes / pages), '')
       || printf(' The owner of %.1f %% of these bytes is not known.', 100.0 * unknown_bytes / max(bytes_read + bytes_written, 1))
       || coalesce((SELECT printf(' The file has %.1f MB: %.1f times as much was written. Reading %.1f MB of it in %.0f ms showed the owners of %d of its %d pages%s.',
                                  1.0 * w.pages * w.page_size / 1e6, 1.0 * bytes_written / max(w.pages * w.page_size, 1), w.bytes / 1e6, w.ns / 1e6, w.known, w.pages,
                                  iif(w.stopped = '', '', ', then ' || w.stopped))
                    FROM temp.walk AS w JOIN temp.page_walked_database AS b ON b.database = d.database), '') AS story,
       0 AS place, bytes_read + bytes_written AS bytes, d.database
FROM temp.page_databases AS d
UNION ALL
SELECT 'Index ' || btree || ' of ' || "table"
       || iif((SELECT count(*) FROM temp.page_databases) > 1, ' in ' || fileName(database), '')
       || printf(': %.0f %% of all bytes written to %s, each of its pages %s; ', 100 * share, target,
                 iif(pages > 0, printf('%.*f times', iif(1.0 * writes / pages < 10, 1, 0), 1.0 * writes / pages), 'an unknown number of times'))
       || CASE WHEN is_automatic THEN 'it enforces UNIQUE or PRIMARY KEY'
               WHEN texts = 0 THEN 'whether a statement reads it is not known: the file has no plan'
               WHEN readers THEN printf('%d of %d texts read it', readers, texts)
               ELSE printf('no recorded statement reads it (0 of %d texts%s)', texts,
                           iif(unknown_texts, printf('; the plans of %d more are not known', unknown_texts), '')) END || '.',
       1, bytes_written, database
FROM temp.page_indexes JOIN temp.page_texts WHERE share >= 0.1
ORDER BY place, bytes DESC, database
LIMIT 1 + 2 * coalesce(CAST(:limit AS INTEGER), 5);
