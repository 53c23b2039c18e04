/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERYPROF_CMD_UI_MEMORY_LIMIT_H
#define QUERYPROF_CMD_UI_MEMORY_LIMIT_H

/* This process gets half of the machine's memory at most: behind that a trace file of a stranger ends the
 * command as out of memory, where it would make the machine swap. */
void memory_limit_set(void);

/* As it was before, for another program that this process starts or becomes. */
void memory_limit_lift(void);

#endif
