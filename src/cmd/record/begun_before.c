/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/begun_before.h"

#include <stdlib.h>

#include "base/text.h"
#include "cmd/attach/inspection.h"
#include "cmd/ui/complain.h"

#define LINES_MAX 5
#define TEXT_MAX 300

struct inspection *begun_before_inspect(pid_t process)
{
	struct sqlite_codes codes = { .nameless = 0 };
	char sentence[SENTENCE_SIZE];
	struct inspection *inspection = NULL;
	struct target target;

	if (target_open_to_inspect(&target, process, sentence) && sqlite_codes_find(&codes, &target))
		inspection = inspection_make(&target, &codes);
	sqlite_codes_free(&codes);
	target_close(&target);
	return inspection;
}

static void say(const struct inspection *inspection, const struct inspected_thread *thread)
{
	/* The innermost is the first. */
	const struct inspected_statement *statement = &thread->statements[thread->statement_count - 1];
	char *text =
		statement->size ? text_format("%.*s", TEXT_MAX, inspection->texts + statement->text) : NULL;

	if (text)
		text_blank_controls(text);
	complain("thread %d executed this statement already; it is recorded from its next call on: %s",
	         (int)thread->id, text ? text : "(its text is not known)");
	free(text);
}

void begun_before_say(struct inspection *inspection)
{
	unsigned found = 0;

	for (uint32_t i = 0; inspection && !inspection->sentence[0] && i < inspection->count; i++)
		if (inspection->threads[i].statement_count && ++found <= LINES_MAX)
			say(inspection, &inspection->threads[i]);
	if (found > LINES_MAX)
		complain("%u more threads did so", found - LINES_MAX);
	inspection_free(inspection);
}
