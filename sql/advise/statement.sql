-- SPDX-License-Identifier: Apache-2.0
-- The id of the statement whose text is, or begins with, ?1, as stored: the longest one.
SELECT printf('%016x', x.normalized_query_hash) FROM statements AS x JOIN statement_counters AS c ON c.statement = x.id
WHERE x.query <> '' AND substr(?1, 1, length(x.query)) = x.query
ORDER BY length(x.query) DESC LIMIT 1;
