/* SPDX-License-Identifier: Apache-2.0 */
/* A library to load and unload. */
int plugin_answer(int (*callback)(void));
int plugin_answer(int (*callback)(void))
{
	return callback != 0 ? callback() + 1 : 42;
}
