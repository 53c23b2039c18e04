/* SPDX-License-Identifier: Apache-2.0 */
/*
 * injection.h and inspection.h of a processor whose registers they do not know. No process gets here, because
 * target_open() refuses each with the reason.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/attach/injection.h"
#include "cmd/attach/inspection.h"

#define SENTENCE "it needs x86-64"

bool injection_run(struct injection *injection, const struct target *target, const char *library,
                   const struct attach_request *request)
{
	(void)target, (void)library, (void)request;
	*injection = (struct injection){ .sentence = SENTENCE };
	return false;
}

struct inspection *inspection_make(const struct target *target, const struct sqlite_codes *codes)
{
	struct inspection *inspection = calloc(1, sizeof(*inspection));

	(void)target, (void)codes;
	if (inspection)
		snprintf(inspection->sentence, sizeof(inspection->sentence), "%s", SENTENCE);
	return inspection;
}

void inspection_free(struct inspection *inspection)
{
	free(inspection);
}
