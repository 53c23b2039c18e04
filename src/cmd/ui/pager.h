/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that is longer than the terminal goes through $PAGER.
 */
#pragma once

/* If stdout is a terminal: holds back the output from now on, and starts a pager when it is longer than the
 * screen. */
void pager_begin(void);

/* Prints the held output, or waits until the user has left the pager. Restores stdout. Does nothing without
 * pager_begin(). 0, or an errno value. */
int pager_end(void);
