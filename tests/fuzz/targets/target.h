/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that libFuzzer or replay.c calls. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional functions of a target. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
/* The number of cases. The first two bytes of an input, little-endian, choose one. replay.c gives the inputs
 * to all of them. */
__attribute__((weak)) size_t fuzz_choices(void);

#endif
