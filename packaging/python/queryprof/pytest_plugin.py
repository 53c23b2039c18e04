# SPDX-License-Identifier: Apache-2.0
"""A plugin that pytest loads if the package is installed:

    def test_orders(queryprof_limits):
        connection = sqlite3.connect("test.db")
        queryprof_limits(connection, max_scan=1000)   # until the end of the test
        orders_of(connection, 7)
"""
import contextlib

import pytest

from .checks import limits


@pytest.fixture
def queryprof_limits():
    """A function with the arguments of queryprof.limits(). The limits hold until the end of the test."""
    with contextlib.ExitStack() as stack:
        yield lambda connection, **named: stack.enter_context(limits(connection, **named))
