-- SPDX-License-Identifier: Apache-2.0
-- Statements whose time is mostly a checkpoint: of what others wrote, too.
SELECT hash, total(ns) / sampled * wall AS saved, sqrt(sum(square)) / sampled * wall AS error, duration(total(ns) / sampled * wall) AS took,
       printf('%.0f', 100.0 * total(ns) / sampled) AS share
FROM temp.finding_sampled WHERE checkpoint
GROUP BY hash HAVING 100.0 * total(ns) / sampled >= 30;
