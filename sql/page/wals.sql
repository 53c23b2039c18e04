-- SPDX-License-Identifier: Apache-2.0
-- The WALs by their largest size, with a story for each. database: the name of the file. :no_text: if it is not NULL,
-- no text of a statement; :no_paths: no folders.
SELECT fileName(database) AS database, largest_frames AS frames, iif(:no_text, NULL, iif(:no_paths, withoutFolders(story), story)) AS story
FROM wal_story ORDER BY largest_frames DESC, database LIMIT 20;
