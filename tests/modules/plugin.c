/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded and unloaded. */
int plugin_answer(int (*callback)(void));
int plugin_answer(int (*callback)(void))
{
	return callback != 0 ? callback() + 1 : 42;
}
