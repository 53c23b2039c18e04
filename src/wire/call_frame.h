/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of the application in its own language, as a query's record has it: frames one after
 * another, the newest first, each a head and its texts, without gaps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CALL_FRAMES_MAX 32
#define CALL_STACK_BYTES 3072 /* a deeper stack is cut after a whole frame */
#define CALL_FILE_BYTES 512   /* longer texts are cut */
#define CALL_FUNCTION_BYTES 160

/* The function of a frame that stands for frames of libraries that were left out. */
#define CALL_FRAMES_LEFT_OUT "..."

struct call_frame {
	uint32_t line; /* 0: not known */
	uint16_t file_size;
	uint8_t function_size;
	uint8_t is_library; /* a library's code, or the language's own, and not the application's */
};

/* A frame of a record, which may be a stranger's. */
struct call_frame_view {
	struct call_frame frame;
	const char *file, *function; /* without terminators */
};

/* The frame at `*at`, of which `*left` bytes exist; both advance past it. False: there is no complete one. */
static inline bool call_frame_next(const char **at, size_t *left, struct call_frame_view *view)
{
	size_t size;

	if (*left < sizeof(view->frame))
		return false;
	memcpy(&view->frame, *at, sizeof(view->frame));
	size = sizeof(view->frame) + view->frame.file_size + view->frame.function_size;
	if (size > *left)
		return false;
	view->file = *at + sizeof(view->frame);
	view->function = view->file + view->frame.file_size;
	*at += size;
	*left -= size;
	return true;
}
