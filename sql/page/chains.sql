-- SPDX-License-Identifier: Apache-2.0
-- The chains of waits, the rows of read/lock_chains.sql in temp.page_chains. :no_text: if it is not NULL, no text of a statement.
SELECT waited_ms, longest_ms, waits, links, iif(:no_text, NULL, cause) AS cause FROM temp.page_chains ORDER BY rowid;
