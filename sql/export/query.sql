-- SPDX-License-Identifier: Apache-2.0
-- The data of the queries in the rows from :first to :last. The last column is the row of the statement.
SELECT id, query_id, database, statement FROM queries WHERE id BETWEEN :first AND :last;
