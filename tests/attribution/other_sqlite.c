/* SPDX-License-Identifier: Apache-2.0 */
/* Debian's static SQLite library as a shared one. */
typedef int nothing_here;
