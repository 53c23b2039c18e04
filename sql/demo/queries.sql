-- SPDX-License-Identifier: Apache-2.0
-- The demo's queries: real questions to Debian's package index (the tables of schema.sql). Each is slow for another
-- reason. Apart from missing indexes, nothing was done to make them slow.

-- Text search: how many packages match each of these, by name, description or tags?
PRAGMA query_id = 'text search';
WITH topics(topic) AS (VALUES
	('audio'), ('backup'), ('browser'), ('calendar'), ('chat'), ('chemistry'), ('compiler'),
	('compress'), ('database'), ('debug'), ('editor'), ('email'), ('encrypt'), ('firewall'),
	('genom'), ('image'), ('music'), ('network'), ('parser'), ('photo'), ('printer'),
	('profil'), ('query'), ('robot'), ('scanner'), ('spell'), ('sqlite'), ('video'))
SELECT topic, count(*) AS packages, sum(installed_size_kib) / 1024 AS mib
FROM topics JOIN packages
  ON name || ' ' || description || ' ' || tags LIKE '%' || topic || '%'
GROUP BY topic ORDER BY packages DESC LIMIT 5;

-- Dependency closure: what does each desktop bring along?
PRAGMA query_id = 'dependency closure';
WITH RECURSIVE closure(desktop, package) AS (
	SELECT name, name FROM packages WHERE name GLOB 'task-*-desktop'
	UNION
	SELECT desktop, target FROM closure JOIN dependencies USING (package)
	WHERE kind IN ('Depends', 'Pre-Depends', 'Recommends') AND alternative = 0)
SELECT desktop, count(*) AS packages, sum(installed_size_kib) / 1024 AS mib
FROM closure JOIN packages ON name = package
GROUP BY desktop ORDER BY mib DESC LIMIT 5;

-- Big sort: for each package that others depend on, the largest that does.
PRAGMA query_id = 'big sort';
SELECT target, users, largest, mib FROM (
	SELECT target, package AS largest, installed_size_kib / 1024 AS mib,
	       row_number() OVER (PARTITION BY target ORDER BY installed_size_kib DESC, name) AS rank,
	       count(*) OVER (PARTITION BY target) AS users
	FROM dependencies JOIN packages ON name = package)
WHERE rank = 1 ORDER BY users DESC LIMIT 5;

-- Aggregate: which maintainer's packages depend on the most other sources?
PRAGMA query_id = 'aggregate';
SELECT substr(mine.maintainer, 1, instr(mine.maintainer, ' <') - 1) AS maintainer,
       count(DISTINCT mine.name) AS packages, count(DISTINCT theirs.source) AS sources
FROM packages AS mine
JOIN dependencies ON package = mine.name
JOIN packages AS theirs ON theirs.name = target
GROUP BY mine.maintainer ORDER BY sources DESC LIMIT 5;

-- Join without an index: programs for sound, video and pictures whose names are in the description of another
-- program.
PRAGMA query_id = 'join without an index';
WITH programs AS MATERIALIZED (
	SELECT name, source, description FROM packages
	WHERE section IN ('sound', 'video', 'graphics'))
SELECT named.name AS program, count(*) AS mentions, min(other.name) AS for_example
FROM programs AS named JOIN programs AS other
  ON named.source <> other.source AND other.description LIKE '%' || named.name || '%'
WHERE length(named.name) > 4
GROUP BY named.name ORDER BY mentions DESC LIMIT 5;
