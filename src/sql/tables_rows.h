/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a table's fill(): adds the table's cells, row by row in the order of its columns.
 */
#pragma once

#include "sql/tables.h"

void table_add_integer(struct table_rows *rows, int64_t value);
void table_add_real(struct table_rows *rows, double value);
void table_add_failed(struct table_rows *rows);                 /* no memory for more */
void table_add_text(struct table_rows *rows, const char *text); /* copied; NULL: NULL */
