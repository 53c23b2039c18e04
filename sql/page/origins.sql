-- SPDX-License-Identifier: Apache-2.0
-- The threads and labels of the samples, in the order in which the points of `times` name them (cmd/read/page_times.h). The first
-- one stands for those that are not known, and for those beyond the limit. :no_text: if it is not NULL, no labels, because
-- comments of statements may have set them.
SELECT p.process_id, t.thread_id, coalesce(t.thread_name, '') AS thread_name, iif(:no_text, '{}', coalesce(g.labels, '{}')) AS labels
FROM temp.page_origins AS o LEFT JOIN threads AS t ON t.id = o.thread LEFT JOIN processes AS p ON p.id = t.process
LEFT JOIN label_sets AS g ON g.id = o.labels
ORDER BY o.id;
