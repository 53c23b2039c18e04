/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with another function than main. Neither may get the other function's name.
 */
#include <stdio.h>

__attribute__((noinline)) static int entry_before(int value)
{
	return printf("%d\n", value) + value;
}

int main(int argc, char **argv)
{
	return entry_before(argc) + (argv[0] == NULL);
}

__attribute__((noinline, used)) static int entry_after(int value)
{
	return entry_before(value) * value;
}
