/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a statement: equal for texts that differ only in literals, white
 * space, comments and the case of words.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 64-bit hash of the statement's shape. The text need not be valid SQL, complete
 * or free of zeros. */
uint64_t normalize_hash(const char *sql, size_t size);

/* Hash of the block comments, which may have labels (label/comment.h); 0: there are none. It
 * ignores traceparent and tracestate, which differ for each request. */
uint64_t normalize_comments(const char *sql, size_t size);
