/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two builds must have in common to read each other's memory.
 */
#pragma once

#include <stddef.h>

/* The layout of what lies in shared memory: a digest of this folder. */
extern const char wire_version[16];

/* `queryprof record` and the library that it has programs load agree on the settings in the environment and
 * on the ring that the library fills and the command reads. The library contains this text, so that the
 * command finds it there without running any of it. */
extern const char wire_agreement[];
extern const size_t wire_agreement_size; /* with its terminator */
