/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file in memory as the loader would map it, with its relative relocations applied. It is never
 * executed.
 */
#ifndef QUERYPROF_TESTS_STATIC_LOAD_H
#define QUERYPROF_TESTS_STATIC_LOAD_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

struct load {
	struct dl_phdr_info info;
	void *memory;
	size_t size;
};

/* False: the file is not a program or shared object for this processor, or there is no memory for it. */
bool load_file(struct load *load, const char *path);
void load_free(struct load *load);

#endif
