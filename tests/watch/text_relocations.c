/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that was not compiled for modules. The linker writes the address of a function into the code
 * (DT_TEXTREL).
 */
#include <unistd.h>

__attribute__((visibility("default"))) int close_by_code(int fd);
extern __attribute__((visibility("default"))) int (*close_by_data)(int);

int close_by_code(int fd)
{
	return close(fd);
}

int (*close_by_data)(int) = close;
