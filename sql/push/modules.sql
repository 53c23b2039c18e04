-- SPDX-License-Identifier: Apache-2.0
-- The modules in the rows after :since up to :until, for modules_rows.
SELECT
	(SELECT identity FROM state) AS file,
	id AS module,
	coalesce((SELECT hostname FROM processes ORDER BY id LIMIT 1), '') AS hostname,
	path AS path,
	build_id AS build_id,
	base AS base,
	extent AS extent,
	elf_start AS elf_start
FROM modules
WHERE id > :since AND id <= :until;
