/*
 * The list of export formats.
 */
#ifndef QUERYPROF_EXPORT_FORMATS_H
#define QUERYPROF_EXPORT_FORMATS_H

#include "export/export.h"

/* The formats in the order of the help; NULL past the last. */
const struct export_format *export_format_at(size_t index);

#endif
