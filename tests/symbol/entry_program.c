/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose main is not its only function: neither may get the other's name.
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
