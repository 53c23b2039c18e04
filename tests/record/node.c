/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a module with a copy of SQLite inside, of which it exports nothing: it has a message
 * that every copy has. */
const char *own_copy_message(void);

__attribute__((visibility("default"))) const char *own_copy_message(void)
{
	return "malformed database schema";
}
