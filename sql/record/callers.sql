-- SPDX-License-Identifier: Apache-2.0
-- The interpreters among the processes after number :before whose runs with samples have no line of their program: at most
-- three, and how many there are.
WITH
ran AS (
	SELECT fileName(executable) AS name, id FROM processes WHERE id > :before),
understood AS (
	SELECT name, max(q.call_stack) AS call_stack FROM ran JOIN queries AS q ON q.process = ran.id
	WHERE q.id > 0 AND q.finished AND q.samples_cpu + q.samples_real > 0
	GROUP BY name),
missed AS (
	SELECT name, row_number() OVER (ORDER BY name) AS place FROM understood
	WHERE call_stack = 0
	  AND (name GLOB 'python*' OR name GLOB 'ruby*' OR name GLOB 'php*' OR name GLOB 'perl*' OR name GLOB 'tclsh*' OR name GLOB 'lua*'
	       OR name IN ('node', 'nodejs', 'bun', 'deno', 'java', 'irb', 'jruby', 'pypy', 'pypy3')))
SELECT group_concat(name, ', ') FILTER (WHERE place <= 3), count(*) FROM missed HAVING count(*) > 0;
