-- SPDX-License-Identifier: Apache-2.0
-- The demo's database: Debian's package index.
--
-- Each table has only the index of its primary key, because some of the demo's queries are meant to be slow.

CREATE TABLE packages (
	name TEXT PRIMARY KEY,
	version TEXT NOT NULL,
	architecture TEXT NOT NULL,
	source TEXT NOT NULL,           -- the source package it was built from
	section TEXT NOT NULL,
	priority TEXT NOT NULL,
	maintainer TEXT NOT NULL,
	homepage TEXT,
	installed_size_kib INTEGER NOT NULL,
	size_bytes INTEGER NOT NULL,    -- of the .deb file
	tags TEXT NOT NULL,             -- debtags, comma-separated
	description TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE dependencies (
	package TEXT NOT NULL,
	kind TEXT NOT NULL,             -- Depends, Pre-Depends, Recommends or Suggests
	position INTEGER NOT NULL,      -- in the package's list of this kind
	alternative INTEGER NOT NULL,   -- 0: the first choice of "a | b"
	target TEXT NOT NULL,
	version TEXT,                   -- ">= 2.34", NULL: any
	PRIMARY KEY (package, kind, position, alternative)
) WITHOUT ROWID;
