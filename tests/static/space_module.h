/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERYPROF_TESTS_SPACE_MODULE_H
#define QUERYPROF_TESTS_SPACE_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#define SPACE_KEYS 16

__attribute__((visibility("default"))) bool space_make_keys(void);
__attribute__((visibility("default"))) void space_set(uintptr_t value);
__attribute__((visibility("default"))) int space_kept(uintptr_t value);
__attribute__((visibility("default"))) int *space_errno(void);

#endif
