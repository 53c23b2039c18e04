/*
 * The export formats: this table parses --format and prints the help.
 */
#include "export/formats.h"

static const struct export_format *const formats[] = {
	&export_collapsed, &export_pprof, &export_speedscope, &export_flamegraph, &export_json,
};

const struct export_format *export_format_at(size_t index)
{
	return index < sizeof(formats) / sizeof(formats[0]) ? formats[index] : NULL;
}
