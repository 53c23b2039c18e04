-- SPDX-License-Identifier: Apache-2.0
-- All losses, and the :missed samples that were removed before they could be sent, at :since, for losses_rows.
SELECT
	(SELECT identity FROM state) AS file,
	l.process, l.reason, l.first_ns,
	0 AS position,
	l.samples + l.refusals AS version,
	l.last_ns, p.hostname,
	coalesce(:service, fileName(p.executable)) AS service,
	p.process_id, l.samples, l.refusals
FROM losses AS l
LEFT JOIN processes AS p ON p.id = l.process
UNION ALL
SELECT (SELECT identity FROM state), 0, 'removed before it was sent', 0, :since, :missed,
       (SELECT min(timestamp_ns) FROM samples), (SELECT hostname FROM processes ORDER BY id DESC LIMIT 1),
       coalesce(:service, ''), 0, :missed, 0
WHERE :missed > 0;
