/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of export formats.
 */
#pragma once

#include "export/export.h"

/* The formats in the order of the help; NULL past the last. */
const struct export_format *export_format_at(size_t index);

/* A writer of the format, for its add(). NULL: no memory. `info`, which is complete before
 * the first sample, and its strings stay valid until export_end(), which calls the format's
 * end() and frees the writer. */
void *export_begin(const struct export_format *format, FILE *out, const struct export_info *info);
bool export_end(const struct export_format *format, void *writer, bool complete);
