# SPDX-License-Identifier: Apache-2.0
"""The command `queryprof`: replaces Python by the program."""
import os
import sys

from . import command


def main():
    os.execv(command, [command] + sys.argv[1:])


if __name__ == "__main__":
    main()
