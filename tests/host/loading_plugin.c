/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor runs code of the program while the loader's lock is held. */
void run_in_constructor(void);

__attribute__((constructor)) static void run(void)
{
	run_in_constructor();
}
