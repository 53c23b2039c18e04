/*
 * The export formats: this table parses --format and prints the help.
 */
#include "export/export.h"

static const struct report_format *const formats[] = {
	&report_collapsed, &report_pprof, &report_speedscope, &report_flamegraph, &report_json,
};

const struct report_format *report_format_at(size_t index)
{
	return index < sizeof(formats) / sizeof(formats[0]) ? formats[index] : NULL;
}
