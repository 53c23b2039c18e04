/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor runs code of the program, with the loader's lock held. */
void run_in_constructor(void);

__attribute__((constructor)) static void run(void)
{
	run_in_constructor();
}
