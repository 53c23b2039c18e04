# SPDX-License-Identifier: Apache-2.0
"""Importing this makes a test that hangs print the stack of each thread, twice before ctest's time limit."""

import contextlib
import faulthandler
import signal
import subprocess

faulthandler.dump_traceback_later(400, repeat=True)

wait_and_close = subprocess.Popen.__exit__


def end(process, kind, *exception):
    """Without this, a failure inside of `with Popen(...)` would wait for a process that nobody ends any more."""
    if kind:
        process.kill()
    wait_and_close(process, kind, *exception)


subprocess.Popen.__exit__ = end


@contextlib.contextmanager
def bounded(what, seconds=300):
    """Limits a read or wait that would otherwise hang the test if the expected event never comes. For the main
    thread."""
    def fail(*_):
        raise AssertionError("never came: " + what)

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
