/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentence for a QP_ code, kept for the calling thread (qp_error()).
 */
#pragma once

#include "queryprof.h"

/* Keeps the sentence and returns `code`. */
int error_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with a malloc'ed sentence, which it frees; NULL: `fallback`. */
int error_detach(int code, char *sentence, const char *fallback);
