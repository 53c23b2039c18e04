/* SPDX-License-Identifier: Apache-2.0 */
/* All of the library is in Debian's static one. */
typedef int nothing_here;
