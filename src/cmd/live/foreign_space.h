/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of another process, for names of its code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/attach/target.h"
#include "frames/address.h"
#include "modules/module_map.h"

struct foreign_space {
	struct address_space space; /* first: its functions get it */
	pid_t process;
	int64_t start_ns; /* of the process, since 1970 */
	struct module_map map;
};

/* False: out of memory. Close it in both cases. */
bool foreign_space_open(struct foreign_space *foreign, const struct target *target);
void foreign_space_close(struct foreign_space *foreign);
