#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that measure for minutes or hours refuse unknown options and invalid values immediately, with a line that
names the option or value and what is allowed.

usage: test_options.py PROGRAM..."""

import subprocess
import sys

WRONG = {
    ("--help",): "--help is no option",
    ("--seconds", "1", "--second", "1"): "--second is no option",
    ("60",): "60 is no option",
    ("--seconds",): "--seconds has no value",
    ("--seconds", "soon"): "soon is no value of --seconds",
    ("--seconds", "0"): "0 is no value of --seconds",
    ("--seconds", "nan"): "nan is no value of --seconds",
}

failures = 0
for program in sys.argv[1:]:
    for arguments, problem in WRONG.items():
        try:
            run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
            given = run.returncode, run.stderr
        except subprocess.TimeoutExpired:
            given = None, "runs on"
        allowed = "the options are" in given[1] and "--seconds S" in given[1]
        if given[0] != 2 or problem not in given[1] or not allowed or given[1].count("\n") != 1:
            print(f"{program} {' '.join(arguments)}: {given}")
            failures += 1
sys.exit(failures != 0)
