/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that is longer than the terminal goes through $PAGER.
 */
#pragma once

/* Where stdout is a terminal: what is printed from now on is held back, and a pager
 * gets it once it is longer than the screen. */
void pager_begin(void);

/* Prints what was held back, or waits until the person has left the pager. stdout is as
 * before. Nothing where none was begun. 0, or an errno value. */
int pager_end(void);
