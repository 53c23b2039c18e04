-- SPDX-License-Identifier: Apache-2.0
-- Foreign keys whose child table is scanned for each change of the parent.
SELECT hash, sum(ns) AS saved, sqrt(sum(error * error)) AS error, "table", duration(sum(ns)) AS took,
       iif(max(columns) = '', 'an index on the columns of the foreign key of ' || "table",
           printf('CREATE INDEX "%w" ON "%w"("%s");', "table" || '_' || replace(max(columns), ', ', '_'), "table", replace(max(columns), ', ', '", "'))) AS cure
FROM (SELECT n.*, substr(compared, 1, instr(compared || ';', ';') - 1) AS columns
      FROM temp.finding_tables AS n JOIN temp.finding_statements AS f ON f.hash = n.hash
      WHERE detail LIKE 'SCAN %' AND compared NOT LIKE 'in expressions:%'
        -- A table that the statement does not name is read for a foreign key, by an action or a check.
        AND (around LIKE '%FOREIGN KEY ACTION%'
             OR name = '' AND around NOT LIKE '%TRIGGER %' AND around NOT LIKE '%SUBQUERY%' AND around NOT LIKE '%MATERIALIZE%' AND around NOT LIKE '%CO-ROUTINE%'
                AND (query LIKE 'DELETE%' OR query LIKE 'UPDATE%' OR query LIKE 'REPLACE%' OR query LIKE 'INSERT OR REPLACE%')))
GROUP BY hash, "table";
