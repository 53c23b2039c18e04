/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of libc, so that it has stubs for them (test_stubs.c). */
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	return getppid() == 0 && strlen(argv[0]) == 0;
}
