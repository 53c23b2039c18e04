/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a span in addition to its times: qp_span_attr() and related functions of queryprof.h,
 * which are defined here. Notes are entries of the thread's newest chunk, including texts.
 */
#pragma once

#include "wire/span_record.h"

/* The texts of a note, whose sizes are in `entry`. */
static inline const char *note_text(const struct span_entry *entry)
{
	return (const char *)(entry + 1);
}

static inline uint32_t note_key_size(const struct span_entry *entry)
{
	return (uint32_t)(entry->children >> 32);
}

static inline uint32_t note_value_size(const struct span_entry *entry)
{
	return (uint32_t)entry->children;
}
