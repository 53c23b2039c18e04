/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: texts from a host's SQL, environment and labels. Each reader gets each text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "label/comment.h"
#include "query/normalize.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Copies of the exact size, so that the sanitizer detects a byte read past the end. */
	char *exact = malloc(size ? size : 1), *text = malloc(size + 1);

	if (exact && text) {
		memcpy(exact, data, size);
		free(comment_labels(exact, size));
		normalize_hash(exact, size);
		memcpy(text, data, size);
		text[size] = 0;
		text_cut(text, size);
		text_blank_controls(text);
	}
	free(exact);
	free(text);
	return 0;
}
