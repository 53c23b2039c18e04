-- SPDX-License-Identifier: Apache-2.0
-- The data of the query in row :query; no row if it does not exist. The last column is the row of its statement.
SELECT query_id, database, statement FROM queries WHERE id = :query;
