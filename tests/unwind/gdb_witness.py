# SPDX-License-Identifier: Apache-2.0
"""gdb as an independent witness: it unwinds the same stacks by its own code.

Run by gdb, which runs a program with witness.c preloaded:

  gdb -batch -nx -ex 'set environment LD_PRELOAD .../libunwind_witness.so' \
      -x gdb_witness.py --args python3 -c '...'

At every stop the frames that gdb finds after the signal handler must equal the trace's frames.
WITNESS_STOPS sets the number of stops (default 300). Exit status 1: they differ.
"""
import os
import sys

import gdb

STOPS = int(os.environ.get("WITNESS_STOPS", "300"))
# gdb shows inlined functions and tail calls as frames of their own.
UNREAL = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def find_frames():
    """Returns the addresses of the frames after the handler, leaf first, and whether gdb reached
    the end."""
    frame = gdb.newest_frame()
    while frame is not None and frame.type() != gdb.SIGTRAMP_FRAME:
        frame = frame.older()
    found = []
    interrupted = True
    while frame is not None:
        last = frame
        frame = frame.older()
        if frame is None:
            break
        if frame.type() in UNREAL:
            continue
        # A return address minus one, as in the trace.
        found.append(frame.pc() - (0 if interrupted else 1))
        interrupted = frame.type() == gdb.SIGTRAMP_FRAME
    reason = last.unwind_stop_reason()
    return found, reason in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST)


def read_trace():
    result = gdb.parse_and_eval("(long[3])witness_result")
    depth, truncated, memo_differs = (int(result[i]) for i in range(3))
    memory = gdb.selected_inferior().read_memory(
        int(gdb.parse_and_eval("(unsigned long)&witness_trace")), 8 * depth)
    trace = [int.from_bytes(bytes(memory[8 * i:8 * i + 8]), "little") for i in range(depth)]
    return trace, bool(truncated), bool(memo_differs)


def name(address):
    text = gdb.execute(f"info symbol {address:#x}", to_string=True)
    return f"{address:#x} {text.strip()}"


def print_both(trace, frames):
    for i in range(max(len(trace), len(frames))):
        ours = name(trace[i]) if i < len(trace) else "-"
        theirs = name(frames[i]) if i < len(frames) else "-"
        print(f"  {i:3} {ours}" + ("" if ours == theirs else f"   gdb: {theirs}"))


counts = {"equal": 0, "ours ended early": 0, "gdb ended early": 0, "different": 0}
memo_differences = 0
deepest = 0


def compare_once():
    global memo_differences, deepest
    trace, truncated, memo_differs = read_trace()
    frames, complete = find_frames()
    deepest = max(deepest, len(trace))
    memo_differences += memo_differs
    same = min(len(trace), len(frames))
    if trace == frames and not truncated:
        kind = "equal"
    elif trace[:same] != frames[:same]:
        kind = "different"
    elif len(trace) <= len(frames) and truncated:
        kind = "ours ended early"
    elif len(frames) < len(trace) and not complete:
        kind = "gdb ended early"
    else:
        kind = "different"
    counts[kind] += 1
    if kind != "equal" and counts[kind] <= 3:
        print(f"{kind}:")
        print_both(trace, frames)


for command in ("set pagination off", "set confirm off", "set width 0",
                "set startup-with-shell off", "set debuginfod enabled off",
                "set breakpoint pending on", "set print thread-events off",
                "set backtrace past-main on", "set backtrace past-entry on",
                "set backtrace limit unlimited",
                "handle SIGPROF nostop noprint pass"):
    gdb.execute(command, to_string=True)
gdb.Breakpoint("witness_stop").silent = True
gdb.execute("run", to_string=True)
stops = 0
while stops < STOPS and gdb.selected_inferior().pid != 0:
    compare_once()
    stops += 1
    gdb.execute("continue", to_string=True)
if gdb.selected_inferior().pid != 0:
    gdb.execute("kill", to_string=True)

print(f"{stops} stops, stacks up to {deepest} frames: " +
      ", ".join(f"{count} {kind}" for kind, count in counts.items()) +
      f", {memo_differences} differ with the memo")
sys.stdout.flush()
good = (stops == STOPS and counts["different"] == 0 and memo_differences == 0 and
        counts["equal"] >= 0.97 * stops)
os._exit(0 if good else 1)
