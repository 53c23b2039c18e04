# SPDX-License-Identifier: Apache-2.0
"""Shows the state of libqueryprof in a process or a core file:

    (gdb) source tools/gdb/queryprof-gdb.py
    (gdb) queryprof threads      the threads with a slot, their timers and queries
    (gdb) queryprof runs         the queries that run now
    (gdb) queryprof ring         how full the ring is, and its oldest records

It reads the library's variables, so it needs the library's debug information. It calls
nothing in the process.
"""

import gdb

SLOT_ALIGN = 64
THREADS_PER_BLOCK = 32
CLOCKS = ("cpu", "real")
RECORDS_SHOWN = 16


def variable(file, name):
    """Returns a static variable of a source file."""
    try:
        return gdb.parse_and_eval("'%s'::%s" % (file, name))
    except gdb.error as error:
        raise gdb.GdbError("queryprof: %s of %s cannot be read (%s): is libqueryprof loaded, with debug information?"
                           % (name, file, error)) from None


def number(value):
    return int(value.cast(gdb.lookup_type("unsigned long")))


def key(value):
    high, low = number(value["hi"]), number(value["lo"])
    return "%016x%016x" % (high, low) if high or low else "-"


def text(pointer, size=60):
    if not number(pointer):
        return "-"
    try:
        whole = pointer.string(errors="replace", length=-1)
    except gdb.error:
        return "(gone)"
    whole = " ".join(whole.split())
    return whole if len(whole) <= size else whole[:size - 1] + "…"


def print_table(heading, rows):
    rows = [heading] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(heading))]
    for row in rows:
        gdb.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() + "\n")


def kind_name(kind):
    if kind in (0, 0x7FFFFFFF):
        return "padding" if kind else "-"
    return str(gdb.Value(kind).cast(gdb.lookup_type("enum record_kind")))


def slots():
    """Yields the slots of all threads, at the addresses that slots_get() computes."""
    kind = gdb.lookup_type("struct thread")
    size = kind.sizeof + number(gdb.parse_and_eval("unwind_memo_bytes"))
    size = (size + SLOT_ALIGN - 1) // SLOT_ALIGN * SLOT_ALIGN
    blocks = variable("thread.c", "thread_blocks")
    for block in range(number(variable("thread.c", "thread_block_count"))):
        start = number(blocks[block])
        for place in range(THREADS_PER_BLOCK):
            yield gdb.Value(start + place * size).cast(kind.pointer()).dereference()


def innermost(thread):
    """Returns the newest query of the thread that has not ended, or None."""
    for i in reversed(range(number(thread["nesting"]))):
        if not thread["queries"][i]["ended"]:
            return thread["queries"][i]
    return None


class Queryprof(gdb.Command):
    """Shows the state of libqueryprof in this process: queryprof threads, runs, ring."""

    def __init__(self):
        super().__init__("queryprof", gdb.COMMAND_STATUS, prefix=True)


class Threads(gdb.Command):
    """Shows the threads that have a slot: their timers, and the query that runs."""

    def __init__(self):
        super().__init__("queryprof threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        rows = []
        for thread in slots():
            if not number(thread["owner"]):
                continue
            tag = innermost(thread)
            timers = []
            for i, clock in enumerate(CLOCKS):
                timer = thread["timers"][i]
                if number(timer["kernel"]):
                    timers.append("%s %s %d ns" % (clock, "armed" if timer["armed"] else "idle",
                                                   number(timer["period_ns"])))
            rows.append([number(thread["index"]), number(thread["id"]), thread["name"].string() or "-",
                         "yes" if number(thread["handler"]["is_running"]) else "no", ", ".join(timers) or "-",
                         number(thread["nesting"]), key(tag["key"]) if tag else "-"])
        print_table(["slot", "tid", "name", "in handler", "timers", "nesting", "query"], rows)


class Runs(gdb.Command):
    """Shows the queries that run now, like system.processes."""

    def __init__(self):
        super().__init__("queryprof runs", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        rows = []
        run = variable("inspect.c", "listed")
        while number(run):
            if number(run["version"]) & 1:  # shown
                rows.append([key(run["key"]), number(run["counts"]["start"]["thread_id"]), number(run["working"]) or "-",
                             number(run["rows"]), number(run["counts"]["samples"][0]),
                             number(run["counts"]["samples"][1]), text(run["text"])])
            run = run["next"]
        print_table(["query", "began on", "works on", "rows", "cpu samples", "real samples", "text"], rows)


class Ring(gdb.Command):
    """Shows how full the ring is, and the kinds of its oldest records."""

    def __init__(self):
        super().__init__("queryprof ring", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        ring = variable("state.c", "state_ring")
        if not number(ring):
            gdb.write("no ring: sampling is stopped\n")
            return
        ring = ring.dereference()
        head, tail, size = number(ring["head"]), number(ring["tail"]), number(ring["bytes"])
        sleeping = str(ring["sleep"].cast(gdb.lookup_type("enum ring_sleep")))
        gdb.write("%d of %d bytes used, head %d, tail %d, %d records dropped, reader %s\n"
                  % (head - tail, size, head, tail, number(ring["dropped"]), sleeping))
        print_table(["at", "kind", "bytes", "committed"], self.records(ring, head, tail, size))

    def records(self, ring, head, tail, size):
        """Yields the records from the oldest on, as the reader reads them."""
        at = tail
        for _ in range(RECORDS_SHOWN):
            if at >= head:
                return
            header = number(ring["block"][at % size // 8])
            if not header & 1 << 63:
                yield [at, "-", "-", "no"]
                return
            payload, kind = header & 0xFFFFFFFF, header >> 32 & 0x7FFFFFFF
            yield [at, kind_name(kind), payload, "yes" if kind else "no"]
            at += 8 + (payload + 7) // 8 * 8


Queryprof()
Threads()
Runs()
Ring()
