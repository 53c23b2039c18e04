/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a seccomp filter, a program of classic BPF, for a system call, without installing it.
 *
 * Arguments may be unknown: a filter that tests one is followed both ways. The result is then whether
 * some value of it is punished.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seccomp_call {
	int number;
	uint64_t arguments[6];
	unsigned known;    /* bit i: arguments[i] is known */
	bool must_succeed; /* an error number is a punishment, too */
};

/* Whether the filter may answer the call by killing the thread or the process, or by SIGSYS. Also true if
 * finding out takes too long. A program that the kernel refuses gives any answer. */
bool seccomp_punishes(const struct sock_filter *program, size_t length, const struct seccomp_call *call);
