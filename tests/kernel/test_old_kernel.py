#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs other tests as on Linux 4.18: system calls of newer kernels fail for them and for all programs that they start.

usage: test_old_kernel.py OLD_KERNEL BUILD_DIR PATTERN; PATTERN: names of tests, as for ctest -R"""

import json
import os
import subprocess
import sys
import time

OLD_KERNEL, BUILD, PATTERN = os.path.abspath(sys.argv[1]), *sys.argv[2:]
SKIPPED = 77


def tests():
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1", "-R", PATTERN, "-LE", "long"], stdout=subprocess.PIPE, check=True)
    for test in json.loads(shown.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        yield test["name"], test.get("command", [test["name"] + ", which is not built"]), properties


def main():
    failed, count = [], 0
    for name, command, properties in tests():
        environment = dict(os.environ, **dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", ())))
        begun = time.monotonic()
        done = subprocess.run([OLD_KERNEL, *command], cwd=properties["WORKING_DIRECTORY"], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        is_passed = done.returncode in (0, properties.get("SKIP_RETURN_CODE"))
        count += done.returncode == 0
        print("%s %s (%.1f s)" % ("ok  " if is_passed else "FAIL", name, time.monotonic() - begun), flush=True)
        if done.returncode == SKIPPED and "no seccomp filter here" in done.stdout:
            sys.exit(SKIPPED)
        if not is_passed:
            print("exit status %d\n%s" % (done.returncode, done.stdout), flush=True)
            failed.append(name)
    if failed or not count:
        sys.exit("failed: %s; passed: %d" % (", ".join(failed), count))


main()
