/* SPDX-License-Identifier: Apache-2.0 */
/* A program that no loader loads, and that waits to be killed. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
