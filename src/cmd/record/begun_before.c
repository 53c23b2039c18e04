/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/begun_before.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/attach/look.h"
#include "cmd/ui/complain.h"

#define LINES_MAX 5
#define TEXT_MAX 300

struct look *begun_before_look(pid_t process)
{
	struct sqlite_codes codes = { .nameless = 0 };
	char sentence[SENTENCE_SIZE];
	struct look *look = NULL;
	struct target target;

	if (target_open_to_look(&target, process, sentence) && sqlite_codes_find(&codes, &target))
		look = look_take(&target, &codes);
	sqlite_codes_free(&codes);
	target_close(&target);
	return look;
}

static void say(const struct look *look, const struct look_thread *thread)
{
	/* The innermost is the first. */
	const struct look_statement *statement = &thread->statements[thread->statement_count - 1];
	char *text = statement->size ? text_format("%.*s", TEXT_MAX, look->texts + statement->text) : NULL;

	if (text)
		text_blank_controls(text);
	complain("thread %d executed this statement already; it is recorded from its next call on: %s",
	         (int)thread->id, text ? text : "(its text is not known)");
	free(text);
}

void begun_before_say(struct look *look)
{
	unsigned found = 0;

	for (uint32_t i = 0; look && !look->sentence[0] && i < look->count; i++)
		if (look->threads[i].statement_count && ++found <= LINES_MAX)
			say(look, &look->threads[i]);
	if (found > LINES_MAX)
		complain("%u more threads did so", found - LINES_MAX);
	look_free(look);
}
