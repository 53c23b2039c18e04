/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/page/microhttpd.h"

#include <dlfcn.h>
#include <stddef.h>

#include "cmd/ui/complain.h"

#define LIBRARY "libmicrohttpd.so.12"

struct microhttpd microhttpd;

bool microhttpd_open(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		complain("live: %s cannot be opened; Debian's package libmicrohttpd12 has it. `queryprof "
		         "report FILE --html -o report.html` writes the page without it",
		         LIBRARY);
		return false;
	}
#define MICROHTTPD_LOOK_UP(name)                                                                             \
	microhttpd.name = (__typeof__(microhttpd.name))dlsym(handle, #name);                                 \
	if (!microhttpd.name) {                                                                              \
		complain("live: %s has no %s; version 0.9.75 or later is needed", LIBRARY, #name);           \
		return false;                                                                                \
	}
	MICROHTTPD_FUNCTIONS(MICROHTTPD_LOOK_UP)
	return true;
}
