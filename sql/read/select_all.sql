-- SPDX-License-Identifier: Apache-2.0
-- As select_runs.sql without a parameter, for a file that nobody writes to: a view, because copying a million rows takes
-- longer than reading them. The runs of a growing file are copied, so that all statements read the same runs.
CREATE TEMP VIEW selected AS SELECT id, first_ns, last_ns FROM queries;
CREATE TEMP TABLE selected_labels (labels INTEGER PRIMARY KEY, matches INTEGER NOT NULL);
