/* SPDX-License-Identifier: Apache-2.0 */
/* A static program, which no loader loads. It waits until it is killed. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
