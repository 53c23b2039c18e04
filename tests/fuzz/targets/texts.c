/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: texts that a host's SQL, its environment and its labels bring along. The first
 * byte says which reader gets the rest.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "label/comment.h"
#include "query/normalize.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (size) {
		/* A copy of the exact size: a byte too far is seen. */
		char *exact = malloc(size - 1 ? size - 1 : 1);

		memcpy(exact, data + 1, size - 1);
		if (data[0] % 4 == 0)
			free(comment_labels(exact, size - 1));
		else if (data[0] % 4 == 1)
			normalize_hash(exact, size - 1);
		else if (data[0] % 4 == 2)
			text_blank_controls(text + 1);
		else
			text_cut(text + 1, size - 1);
		free(exact);
	}
	free(text);
	return 0;
}
