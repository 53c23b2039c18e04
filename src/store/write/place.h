/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file's own address space: where the modules of a process lie in it.
 */
#ifndef QUERYPROF_STORE_WRITE_PLACE_H
#define QUERYPROF_STORE_WRITE_PLACE_H

#include "store/write/writer.h"

/* The address of the writer's process in the file's address space; 0 on success. */
int place_address(struct writer *writer, uint64_t address, uint32_t generation, uint64_t *placed);

#endif
