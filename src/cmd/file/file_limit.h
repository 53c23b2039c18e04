/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERYPROF_CMD_FILE_FILE_LIMIT_H
#define QUERYPROF_CMD_FILE_FILE_LIMIT_H

/* Lets this process open as many files as the system allows it; the usual limit is 1,024. */
void file_limit_raise(void);

#endif
