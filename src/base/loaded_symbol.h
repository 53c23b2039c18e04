/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols that a loaded object defines for others, looked up in its own table, as the loader does.
 * dlsym() would wait while another thread is inside dlopen(), and takes a reference to the object.
 */
#ifndef QUERYPROF_BASE_LOADED_SYMBOL_H
#define QUERYPROF_BASE_LOADED_SYMBOL_H

#include <link.h>

/* NULL: the object defines none of this name and type (STT_...), or has no DT_GNU_HASH. Only in a callback of
 * dl_iterate_phdr(): the object stays loaded in it. */
const ElfW(Sym) *loaded_symbol_find(const struct dl_phdr_info *info, const char *name, unsigned type);

#endif
