-- SPDX-License-Identifier: Apache-2.0
-- Connections with a thousand or more statements that are not finalized: for each database, the connection with the most.
WITH newest AS (
	SELECT *, max(statements) AS most, count(*) OVER (PARTITION BY database) AS connections
	FROM open_statement_counts WHERE statement IN (SELECT hash FROM temp.finding_statements) GROUP BY process, session)
SELECT statement AS hash, NULL AS saved, NULL AS error, max(most) AS most, printf('%,d', statements) AS statements,
       iif(bytes, printf('they have about %,.1f MB of memory', bytes * (1.0 * statements / measured) / 1e6), 'their memory is not known') AS memory,
       printf('%,d of them were measured: %,d different texts, this one %,d times', measured, texts, text_statements) AS counted,
       iif(cache_bytes < 1e6, printf('%,.0f KB', cache_bytes / 1e3), printf('%,.1f MB', cache_bytes / 1e6)) AS cache,
       iif(connections > 1, printf('; %,d connections have a thousand or more', connections), '') AS others,
       iif(2 * texts > measured, '; bind the values (?) instead of writing them into the text', '') AS bind
FROM newest WHERE measured > 0 GROUP BY database;
