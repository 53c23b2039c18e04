-- SPDX-License-Identifier: Apache-2.0
-- Selects all runs of queries, and row 0, "no query": then all samples count. A view, because a copy of a million rows
-- takes longer than reading them. The columns are those of select_runs.sql.
CREATE TEMP VIEW selected AS SELECT id, first_ns, last_ns FROM queries;
CREATE TEMP TABLE selected_labels (labels INTEGER PRIMARY KEY, matches INTEGER NOT NULL);
