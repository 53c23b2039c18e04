-- SPDX-License-Identifier: Apache-2.0
-- The findings, as `queryprof findings` prints them, from temp.page_findings (cmd/read/finding_list.h). :no_text: if
-- it is not NULL, the kind of each finding, without its sentences, because they contain names. :no_paths: files
-- without their folders.
SELECT finding, "share_%" AS share, saved_ms, error_ms, iif(:no_text, finding, title) AS title, iif(:no_text, '', evidence) AS evidence,
       iif(:no_text, '', cure) AS cure, sure, see, statement, iif(:no_paths, fileName(caller), caller) AS caller, caller_function
FROM temp.page_findings ORDER BY rowid;
