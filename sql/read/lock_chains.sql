-- SPDX-License-Identifier: Apache-2.0
-- Chains of waits for locks with at least two links (see the view lock_chains), the longest sum of waits first. Chains of the same
-- statements are one line. waited_ms: the waits of the first statements; longest_ms: the longest of these. cause: the chain in
-- words, from the statement that nobody waited for to the statement that did not wait.
WITH RECURSIVE links AS MATERIALIZED (
	SELECT l.*, max(depth) OVER (PARTITION BY chain) AS last,
	       iif(length(query) > 60, substr(query, 1, 57) || '...', coalesce(query, 'a statement')) AS text,
	       iif(length(holder_query) > 60, substr(holder_query, 1, 57) || '...', nullif(holder_query, '')) AS holder_text
	FROM lock_chains AS l),
programs AS MATERIALIZED (
	SELECT hostname, process_id, fileName(executable) || iif(script <> '', ' ' || fileName(script), '') AS program, max(id) FROM processes GROUP BY 1, 2),
ends AS MATERIALIZED (
	SELECT l.chain AS chain, t.duration_ns AS open, t.idle_ns AS outside, t.outcome AS outcome
	FROM links AS l JOIN processes AS p ON p.process_id = l.holder_process_id AND p.hostname = l.hostname
	JOIN transactions AS t ON t.process = p.id AND t.number = l.holder_transaction
	WHERE l.depth = l.last AND l.holder_transaction <> 0),
told AS MATERIALIZED (
	SELECT chain, max(iif(depth = 0, wait_ns, 0)) AS wait_ns, count(*) AS links, max(iif(depth = 0, database, NULL)) AS database,
	       max(iif(depth = 0, query, NULL)) AS query,
	       group_concat(part, '') AS words, json_group_array(json_array(query, lock, iif(depth = last, holder_query, NULL))) AS same
	FROM (SELECT l.*, iif(depth = 0, text || ' of ' || coalesce(p.program || ' ', '') || l.process_id, ', which')
	             || ' waited ' || duration(wait_ns)
	             || ' for the ' || lock || ' lock of '
	             || CASE WHEN l.holder_process_id = 0 THEN 'a holder that is not known'
	                ELSE coalesce(holder_text || ' of ', '') || coalesce(h.program || ' ', 'process ') || l.holder_process_id || iif(h.program IS NULL, ', which is not recorded', '') END
	             || iif(depth < last, '', coalesce((SELECT ', open for ' || duration(open)
	                                    || ', ' || duration(outside) || ' of that outside SQLite'
	                             FROM ends WHERE ends.chain = l.chain), '') || '.') AS part
	      FROM links AS l
	      LEFT JOIN programs AS p ON p.process_id = l.process_id AND p.hostname = l.hostname
	      LEFT JOIN programs AS h ON h.process_id = l.holder_process_id AND h.hostname = l.hostname
	      ORDER BY chain, depth)
	GROUP BY chain HAVING count(*) > 1)
SELECT
	round(sum(wait_ns) / 1e6, 3) AS waited_ms,
	round(max(wait_ns) / 1e6, 3) AS longest_ms,
	count(*) AS waits,
	max(links) AS links,
	database,
	substr(max(printf('%020d', wait_ns) || words), 21) AS cause,
	query
FROM told
GROUP BY same, database
ORDER BY waited_ms DESC, cause
LIMIT 50;
