/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that libFuzzer, or replay.c, calls. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A target may have these. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
/* The first two bytes of an input, little-endian, choose one of so many cases: replay.c gives each
 * input to each of them. */
__attribute__((weak)) size_t fuzz_choices(void);

#endif
