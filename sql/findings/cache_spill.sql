-- SPDX-License-Identifier: Apache-2.0
-- Statements that write changed pages to the file or its WAL before their transaction ends, because the page cache is full.
-- The names of functions show it, so the time is CPU time only, without waits for these writes.
SELECT hash, total(ns) FILTER (WHERE spill) / sampled * wall AS saved, sqrt(total(square) FILTER (WHERE spill)) / sampled * wall AS error,
       duration(total(ns) FILTER (WHERE spill) / sampled * wall) AS took, printf('%.0f', 100.0 * total(ns) FILTER (WHERE spill) / sampled) AS share
FROM temp.finding_sampled
GROUP BY hash HAVING 100.0 * total(ns) FILTER (WHERE spill) / sampled >= 15;
