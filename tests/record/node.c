/* SPDX-License-Identifier: Apache-2.0 */
/* Represents a module with a static SQLite that it does not export. It contains a message that each SQLite
 * has. */
const char *own_copy_message(void);

__attribute__((visibility("default"))) const char *own_copy_message(void)
{
	return "malformed database schema";
}
