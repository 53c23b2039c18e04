/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which b-tree owns each page of a database file, read from the bytes of the file and of its WAL, outside of
 * the program that uses them: without SQLite, without a lock, and never more than 64 MB or for longer than a
 * second. In SQL:
 *   temp.walked_trees  a row for each b-tree: root_page, type, name, "table", is_index, pages;
 *                      is_index: its pages are those of an index; root_page 0: of a virtual table
 *   temp.walk          the file: database, page_size, pages, known (of these), bytes (read), ns, stopped;
 *                      stopped: what ended the walk before all pages were known, or ''
 *   pageOwner(PAGE)    the root page of the page's b-tree; -1: freelist, -2: pointer map; NULL: not known
 */
#pragma once

#include <sqlite3.h>

/* Adds these to a connection. If path is NULL, the tables are empty and no owner is known. A command_result,
 * after a complaint. */
int page_walk(sqlite3 *db, const char *path);
