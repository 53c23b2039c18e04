#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The functions that take most CPU time according to perf and queryprof in the same run: their shares agree within both
error bars. Exit status 77: perf may not record.

usage: test_perf.py QUERYPROF PROGRAM [--seconds 10] [--cpu 1ms]     seconds of CPU time

perf samples by a timer of its own, and queryprof at the kernel's ticks, so a share is off only by chance. Each share has
the standard error of that many draws. Two shares may differ by ERRORS times both errors together."""

import argparse
import collections
import math
import os
import shutil
import subprocess
import sys
import tempfile

ERRORS = 3.5
FUNCTIONS = 10


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def output(*command):
    done = run(*command)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def plain(function):
    """The name without the suffix that the compiler adds to a function's parts."""
    return function.split(".")[0]


def perf_record(data, *command):
    return run("perf", "record", "-q", "-o", data, "-e", "cpu-clock:u", "-F", "1999", "--", *command)


def of_perf(data, program):
    counts = collections.Counter()
    for line in output("perf", "script", "-i", data, "--comms", program[:15], "-F", "ip,sym,dso").splitlines():
        _, function, module = line.split(None, 2)
        if os.path.basename(module.strip("()")) == program:
            counts[plain(function)] += 1
    return counts


def of_trace(queryprof, trace, program):
    """The samples by function, and their number."""
    values = collections.Counter()
    rows = output(queryprof, "sql", "--format", "csv", trace,
                  "SELECT function, self_value FROM top_functions WHERE trace_type = 'CPU' AND self_value > 0 "
                  f"AND module LIKE '%/{program}'")
    for line in rows.splitlines()[1:]:
        function, value = line.rsplit(",", 1)
        values[plain(function)] += int(value)
    samples = output(queryprof, "sql", "--format", "csv", trace,
                     "SELECT count(*) FROM trace_log WHERE trace_type = 'CPU'")
    return values, int(samples.splitlines()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("queryprof")
    parser.add_argument("program")
    parser.add_argument("--seconds", default="10")
    parser.add_argument("--cpu", default="1ms")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="queryprof-accuracy-") as folder:
        data, trace = os.path.join(folder, "perf.data"), os.path.join(folder, "trace")
        if not shutil.which("perf") or perf_record(data, "true").returncode:
            print("perf is not installed, or may not record here")
            return 77
        done = perf_record(data, options.queryprof, "record", "--quiet", "--cpu", options.cpu, "-o", trace, "--",
                           options.program, options.seconds)
        if done.returncode:
            sys.exit(done.stderr)
        program = os.path.basename(options.program)
        perf = of_perf(data, program)
        ours, samples = of_trace(options.queryprof, trace, program)
    perf_all, ours_all = sum(perf.values()), sum(ours.values())
    if not perf_all or not ours_all:
        sys.exit(f"{perf_all} samples of perf's, {ours_all} ns of queryprof's")
    print(f"{perf_all} samples of perf's, {samples} of queryprof's; shares of the program's own code\n"
          f"{'function':32} {'perf':>18} {'queryprof':>18} {'apart, in errors':>18}")
    failed = 0
    for function, count in perf.most_common(FUNCTIONS):
        shares = count / perf_all, ours[function] / ours_all
        share = (shares[0] * perf_all + shares[1] * samples) / (perf_all + samples)
        errors = [math.sqrt(share * (1 - share) / number) for number in (perf_all, samples)]
        apart = (shares[1] - shares[0]) / math.hypot(*errors)
        failed += abs(apart) > ERRORS
        print(f"{function:32} {shares[0]:.4f} +- {errors[0]:.4f}  {shares[1]:.4f} +- {errors[1]:.4f}  {apart:+17.2f}"
              + ("  *" if abs(apart) > ERRORS else ""))
    return 1 if failed else 0


sys.exit(main())
