/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose main is one function among others: it must not be mistaken for
 * them, nor they for it.
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
