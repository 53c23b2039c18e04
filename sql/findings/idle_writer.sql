-- SPDX-License-Identifier: Apache-2.0
-- Transactions that other statements waited for, in this process or another, and in which the program mostly did something
-- other than calling SQLite.
WITH waited AS MATERIALIZED (SELECT * FROM temp.finding_lock_waits WHERE idle_ns > 0.5 * duration_ns)
SELECT hash, sum(wait_ns) AS saved, NULL AS error, duration(sum(wait_ns)) AS waited, count(*) || iif(count(*) = 1, ' wait', ' waits') AS waits,
       duration(max(duration_ns)) AS longest, duration(max(idle_ns)) AS idle, substr(max(printf('%020d', duration_ns) || oneLine(began)), 21) AS began,
       iif(sum(refused), printf(', %,d of them in vain', sum(refused)), '') AS failed,
       iif(max(lock = 'WAL read'), 'finish or reset the statement that reads, or end its transaction, before the program does other work',
           'do the other work before BEGIN or after COMMIT; queryprof locks shows what the program did') AS cure
FROM waited GROUP BY hash;
