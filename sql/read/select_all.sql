-- SPDX-License-Identifier: Apache-2.0
-- As select_runs.sql without a parameter, for a file that nobody writes to: a view, because a copy of a million rows takes
-- longer than reading them. A file that grows is copied, so that all that is read of it has the same runs.
CREATE TEMP VIEW selected AS SELECT id, first_ns, last_ns FROM queries;
CREATE TEMP TABLE selected_labels (labels INTEGER PRIMARY KEY, matches INTEGER NOT NULL);
