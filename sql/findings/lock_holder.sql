-- SPDX-License-Identifier: Apache-2.0
-- Transactions that other statements waited for, and that were inside SQLite for at least half of their time.
SELECT hash, sum(wait_ns) AS saved, NULL AS error, duration(sum(wait_ns)) AS waited, count(*) || iif(count(*) = 1, ' wait', ' waits') AS waits,
       duration(max(duration_ns)) AS longest, duration(max(duration_ns - idle_ns)) AS busy, substr(max(printf('%020d', duration_ns) || oneLine(began)), 21) AS began, max(lock) AS lock,
       iif(sum(refused), printf(', %,d of them in vain', sum(refused)), '') AS failed,
       CASE WHEN query LIKE 'PRAGMA%wal\_checkpoint%' ESCAPE '\' THEN 'PRAGMA wal_checkpoint(PASSIVE), which waits for nobody; or first end the transactions that read'
            WHEN query LIKE 'VACUUM%' THEN 'VACUUM while no other connection works: it locks the whole database, in any journal mode; PRAGMA auto_vacuum = INCREMENTAL frees pages in small steps'
            WHEN total(iif(by_checkpoint, wait_ns, 0)) > 0.5 * sum(wait_ns)
            THEN 'PRAGMA wal_checkpoint(PASSIVE), which waits for nobody: a checkpoint in another mode waits until no transaction writes, and sleeps while the next one begins'
            WHEN max(lock) LIKE 'WAL%' THEN 'shorter write transactions: change fewer rows in each, and find them by an index'
            ELSE 'PRAGMA journal_mode = WAL, in which a writer and readers do not wait for each other; shorter write transactions' END AS cure
FROM temp.finding_lock_waits JOIN temp.finding_statements USING (hash) WHERE idle_ns <= 0.5 * duration_ns GROUP BY hash;
