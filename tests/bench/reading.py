#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One round of tools/bench: the time and the memory of each command that reads a trace file.

  reading.py QUERYPROF ROOT [--samples N] [--runs N] [--only WORD] [--keep FOLDER] [--same FOLDER]

SQL generates the file on the schema of the trace file. It contains 32 threads of 4 processes in statements, one of which
runs all the time; 200 statements, of which few make up most of the runs, and half of the runs are in 30 texts; two plans
for each tenth statement; stacks that share their frames; waits, labels, spans, transactions, and waits for locks of other
processes. The file stays in the cache (QUERYPROF_CACHE_DIR) for the next round.

  --samples N, --runs N   one file of this size. The default is two files: 920000 and 26700, then 10 M and 1 M, which take
                          minutes to generate and 700 MB of the cache
  --only WORD             only commands that contain this word
  --keep FOLDER           keeps each command's output in a file
  --same FOLDER           compares the output with the unpacked output that --keep kept of another build: exit status 1 if
                          they differ

Each command has a line: wall time, CPU time of user and system, the largest resident memory, and the budget: 1 s of CPU
time up to 1 M samples, 8 s above that, 300 MB. An asterisk marks a line over the budget. A command that takes fifteen
times its budget is ended, and the line reports it."""
import argparse
import gzip
import hashlib
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time

START = 1795000000 * 10**9
STEP = 100000  # ns between two samples, over all threads
THREADS, PROCESSES, HASHES, STACKS, BATCHES, LABELS = 32, 4, 200, 90, 5000, 100
WAITS = 2000
SIZES = ((920000, 26700), (10**7, 10**6))
CAUSES = (1 | 24 << 8, 2 | 3 << 8, 3 | 1 << 8, 4 | 3 << 8, 7 | 10 << 8, 9, 17)

# Functions of SQL for deterministic pseudo-random numbers: 0 to 2^31 - 1.
MIX = "(({0}) % 1000003 * 7919 + ({0}) / 1000003 * 104729 + {1}) % 999983 * 2147 % 2147483647"


def mix(of, salt):
    return "(" + MIX.format(of, salt) + ")"


def skewed(of, salt, count):
    """A number below count; small numbers are more frequent."""
    return f"CAST({count} * pow({mix(of, salt)} % 100000 / 100000.0, 3) AS INTEGER)"


def count_from(first, last, name="i"):
    return f"WITH RECURSIVE n ({name}) AS (SELECT {first} UNION ALL SELECT {name} + 1 FROM n WHERE {name} < {last})"


def make_code(db):
    """Modules, frames and stacks."""
    chance = random.Random(1)
    libraries = [("/usr/lib/libsqlite3.so.0", 1500), ("/usr/lib/libc.so.6", 200), ("/usr/bin/app", 3000),
                 ("/usr/lib/libdriver.so", 100), ("/opt/app/plugin.so", 300)]
    code, names = [], {}
    for number, (path, functions) in enumerate(libraries, 1):
        base = 0x7F0000000000 + number * 0x10000000
        db.execute("INSERT INTO modules VALUES (?, ?, ?, 1000000, 0, ?, ?, 0)",
                   (number, f"{number:040x}", path, base, 0x1000000))
        places = [base + 0x1000 + 64 * i for i in range(functions * 3)]
        code.append(places)
        for i, place in enumerate(places):
            if number == 4 and i % 3 == 0:
                continue  # no name
            name = names.setdefault(f"function_{number}_{i // 3}", len(names) + 1)
            inner = [(place, 0, 1, names.setdefault(f"inline_{i % 50}", len(names) + 1))] if i % 20 == 0 else []
            rows = inner + [(place, len(inner), 0, name)]
            db.executemany("INSERT INTO frames VALUES (?, ?, ?, ?4, ?4, 0, 0)", rows)
    db.executemany("INSERT INTO names VALUES (?, ?)", [(number, name) for name, number in names.items()])
    for statement in range(HASHES):
        host = [chance.choice(code[2]) for _ in range(chance.randrange(6, 30))] + code[1][:2]
        step, driver = code[0][3], code[3][:chance.randrange(2, 9)]
        for i in range(STACKS):
            leaf = [code[0][int(len(code[0]) * chance.random()**3)] for _ in range(chance.randrange(1, 12))]
            trace = ([chance.choice(code[1])] if i % 5 == 0 else []) + leaf + [step] + driver + host
            db.execute("INSERT INTO stacks VALUES (?, 0, 1, ?)",
                       (1 + statement * STACKS + i, "[" + ",".join(map(str, trace)) + "]"))


def make_statements(db, half):
    """Statements, their counters, programs and plans. Every other statement has 30 texts, every tenth has two plans."""
    for number in range(HASHES):
        texts = 30 if number % 2 else 1
        labels = 1 + number % LABELS if number % 10 == 5 else 0
        for text in range(texts):
            statement = 1 + number * 30 + text
            db.execute("INSERT INTO statements VALUES (?, ?1, ?, 0, ?, ?)", (
                statement, 1000 + number, f"SELECT a.id, a.name, b.total\n  FROM orders_{number} AS a JOIN lines AS b USING (id)\n"
                f" WHERE a.id = {text} AND b.total > 100 ORDER BY b.total DESC -- {'x' * (number % 70)}", labels))
            for plan in range(2 if number % 10 == 0 else 1):
                program = statement * 2 + plan
                plan_hash = number * 2 + plan + 1
                db.execute("INSERT INTO programs VALUES (?, ?, 1, ?, ?, ?)",
                           (program, statement, plan_hash, START + plan * half, 5000 + plan_hash))
                details = [f"SEARCH a USING INDEX orders_{number}_id (id=?)" if plan else "SCAN a", "SEARCH b USING INTEGER PRIMARY KEY (rowid=?)",
                           "USE TEMP B-TREE FOR ORDER BY"]
                db.execute("INSERT OR IGNORE INTO plans VALUES (?, ?)", (plan_hash, "\n".join(details)))
                db.executemany("INSERT INTO plan_nodes VALUES (?, ?, ?, ?, ?)", (
                    (program, 5, 0, details[0], "" if plan else "id"), (program, 9, 5, details[1], ""), (program, 20, 0, details[2], "")))
                db.executemany("INSERT INTO program_opcodes VALUES (?, ?, ?, ?, 0, 1, 2, 0)", (
                    (program, address, (0, 5, 9, 20)[address % 4], ("Init", "Column", "SeekRowid", "SorterData")[address % 4])
                    for address in range(40)))


def make(path, schema, version, samples, runs):
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 4096;")
    with open(schema, encoding="utf-8") as file:
        db.executescript(file.read())
    db.execute("PRAGMA application_id = %d" % 0x51505246)
    db.execute(f"PRAGMA user_version = {version}")
    whole = samples * STEP
    slots = max(1, runs // (THREADS - 1))
    slot = whole // slots
    half = whole // 2
    db.execute("BEGIN")
    make_code(db)
    make_statements(db, half)
    for process in range(1, PROCESSES + 1):
        db.execute("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) VALUES (?, 'host', ?, ?, ?)",
                   (process, 4000 + process, START, "/usr/bin/app" if process < 3 else "/usr/bin/worker"))
    db.execute("INSERT INTO libraries VALUES (1, '/usr/lib/libsqlite3.so.0', '3.46.1')")
    for thread in range(THREADS):
        db.execute("INSERT INTO threads VALUES (?, ?, ?, ?)", (thread + 1, 1 + thread % PROCESSES, 5000 + thread, f"worker-{thread}"))
        for stretch in (1, 2):
            for kind, name in enumerate(("CPU", "OffCPU")):
                db.execute("INSERT INTO series VALUES (?, ?, ?, 1000000, 1, 'ns', ?)",
                           (1 + thread * 2 + kind + 2 * THREADS * (stretch - 1), thread + 1, name, stretch))
    for labels in range(1, LABELS + 1):
        member = f'"route":"/r{labels}"'
        db.execute("INSERT INTO label_sets VALUES (?, ?1, 1, ?, '', '', '')", (labels, "{" + member + "}"))
        db.execute("INSERT INTO label_values VALUES (?, 'route', ?, '', ?)", (labels, f"/r{labels}", member))
    # The last run takes the last thread's whole time.
    db.execute(f"""
        {count_from(0, slots * (THREADS - 1))}
        INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, initial, statement, query_start_ns,
            query_duration_ns, cpu_time_ns, database, thread_id, exception_code, exception, result_rows, vm_steps,
            fullscan_steps, sorts, memory_usage, samples_cpu, samples_real, weight_cpu, library, session, execution_ns,
            threads, lock_wait_ns, io_read_ns, rest_ns, reads, read_bytes, program, batch)
        SELECT id, printf('%08x-%04x-7%03x-8000-%012x', id, id % 60000, id % 4000, id), 1 + thread % {PROCESSES}, start, start + duration, 1, id,
            statement, start, duration, duration * 6 / 10, '/var/lib/app' || (hash % 2) || '.db', 5000 + thread,
            iif(id % 1000 = 7, 5, 0), iif(id % 1000 = 7, 'database is locked', ''), id % 50, duration / 100, duration / 1000 * (hash % 10 = 0),
            1, 20000, {samples} * 6 / 10 / {runs}, {samples} * 4 / 10 / {runs}, {samples} * 6 / 10 / {runs}, 1, 77000 + thread, duration - 100,
            1, duration / 5, duration / 10, duration / 10, 4, 16384, statement * 2 + (hash % 10 = 0 AND start > {START + half}), id / 100
        FROM (
            SELECT *, 1 + hash * 30 + iif(hash % 2, id % 30, 0) AS statement
            FROM (
                SELECT i + 1 AS id, i / {THREADS - 1} AS slot, iif(last, {THREADS - 1}, i % {THREADS - 1}) AS thread,
                    {START} + iif(last, 0, i / {THREADS - 1} * {slot}) AS start,
                    iif(last, {whole}, {slot} * (900 + i * 7919 % 95) / 1000) AS duration, {skewed("i", 1, HASHES)} AS hash
                FROM (SELECT i, i = {slots * (THREADS - 1)} AS last FROM n)))""")
    # The run of a time on a thread is computed, without a look-up.
    causes = " ".join(f"WHEN {i} THEN {cause}" for i, cause in enumerate(CAUSES))
    batch = whole // (BATCHES // THREADS)
    db.execute(f"""
        {count_from(0, samples - 1)}
        INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size, labels, opcode, wait_ns, wait, span)
        SELECT {START} + at, 1 + thread * 2 + off + 2 * {THREADS} * (thread >= 16 AND at > {half}), iif(runs, run, 0),
            1 + {skewed("run - 1", 1, HASHES)} * {STACKS} + {skewed("i", 2, STACKS)}, i % 4, 1, 0, iif(off, i % 3000000, 0),
            iif(i % 4 = 0, 1 + {skewed("i", 3, LABELS)}, 0), iif(i % 10, 1 + {skewed("i", 4, 39)}, 0), iif(off, 1000000 + i % 3000000, 0),
            iif(off, CASE i % {len(CAUSES)} {causes} END, 0),
            iif(i % 10 = 3 AND at / {batch} < {BATCHES // THREADS}, ({1 << 50}) + (at / {batch} * {THREADS} + thread) * 1000 + 1 + at % {batch} / ({batch} / 5 + 1), 0)
        FROM (
            SELECT *, iif(last, {slots * (THREADS - 1)} + 1, at / {slot} * {THREADS - 1} + thread + 1) AS run,
                last OR at / {slot} < {slots} AND at % {slot} <= {slot} * (900 + (at / {slot} * {THREADS - 1} + thread) * 7919 % 95) / 1000 AS runs
            FROM (
                SELECT i, i * {STEP} + {mix("i", 5)} % {STEP} AS at, {mix("i", 6)} % {THREADS} AS thread,
                    {mix("i", 6)} % {THREADS} = {THREADS - 1} AS last, {mix("i", 7)} % 10 >= 6 AS off
                FROM n))""")
    db.execute("""
        INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls, rows, execution_time_ns, cpu_time_ns,
            duration_ns, min_ns, max_ns, execution_time_square, cpu_time_square, fullscan_steps, sorts, vm_steps, first_seen_ns, last_seen_ns)
        SELECT x.normalized_query_hash, q.database, p.executable, min(x.id), count(*) * 9, sum(result_rows) * 9, sum(execution_ns) + count(*) * 1000,
            sum(cpu_time_ns) + count(*) * 600, sum(query_duration_ns) + count(*) * 1000, 1000, max(execution_ns), sum(1.0 * execution_ns * execution_ns),
            sum(1.0 * cpu_time_ns * cpu_time_ns), sum(fullscan_steps), sum(sorts), sum(vm_steps), min(query_start_ns), max(query_start_ns)
        FROM queries AS q JOIN statements AS x ON x.id = q.statement JOIN processes AS p ON p.id = q.process
        GROUP BY 1, 2, 3""")
    db.execute("""
        INSERT INTO statement_parts
        SELECT x.normalized_query_hash, q.database, p.executable, g.layout, 0, x.labels, count(*) * 9, sum(exception_code <> 0), sum(result_rows) * 9,
            sum(execution_ns) + count(*) * 1000, sum(cpu_time_ns) + count(*) * 600, sum(query_duration_ns) + count(*) * 1000, 0, 0,
            max(execution_ns), min(query_start_ns), max(query_start_ns)
        FROM queries AS q JOIN statements AS x ON x.id = q.statement JOIN processes AS p ON p.id = q.process JOIN programs AS g ON g.id = q.program
        GROUP BY 1, 2, 3, 4, 6""")
    # Half of the waits are for a transaction of another process, whose number is unknown.
    db.execute(f"""
        {count_from(1, 20 * WAITS)}
        INSERT INTO transactions (id, process, number, session, thread_id, start_ns, duration_ns, write_ns, exclusive_ns, idle_ns,
            statements, outcome, waited_for, first, last, database, first_query, last_query)
        SELECT i, 1 + i % {PROCESSES}, i, 77000 + i % {THREADS}, 5000 + i % {THREADS}, {START} + {whole} / {20 * WAITS} * i, iif(i = 5, {whole} / 2, {whole} / {5 * WAITS}),
            iif(i % 3, {whole} / {6 * WAITS}, 0), 0, 0, 3, 1, i % 20 = 0, 1 + {mix("i", 8)} % {runs}, 1 + {mix("i", 8)} % {runs},
            '/var/lib/app' || (i % 2) || '.db', 'BEGIN IMMEDIATE', 'COMMIT'
        FROM n""")
    db.execute(f"""
        {count_from(1, 2 * WAITS)}
        INSERT INTO waits_for_locks (id, query, start_ns, wait_ns, lock, refused, thread_id, process, database, holder, holder_query,
            holder_session, holder_process_id, holder_thread_id, holder_transaction)
        SELECT i, 1 + {mix("i", 9)} % {runs}, {START} + {whole} / {2 * WAITS} * i, {whole} / {10 * WAITS}, 24, i % 7 = 0, 5000 + i % {THREADS}, 1 + i % {PROCESSES},
            '/var/lib/app' || (i % 2) || '.db', iif(i % 2, 1 + {mix("i", 8)} % {runs}, 0), iif(i % 2, 'BEGIN IMMEDIATE', ''),
            iif(i % 2, 77000 + i % {THREADS}, 0), 4001 + (i + i % 2 + 2) % {PROCESSES}, iif(i % 2, 5000 + i % {THREADS}, 0), iif(i % 2, 10 * i, 0)
        FROM n""")
    for site in range(1, 7):
        db.execute("INSERT INTO span_sites VALUES (?, ?, 'app.c', ?, 'handle', 0, 0)", (site, "request" if site == 1 else f"part {site}", site * 10))
    children = " || ".join(f"',[{k + 1},{k},' || ({batch} / 5 * {k - 1}) || ',' || ({batch} / 5) || ']'" for k in range(1, 6))
    db.execute(f"""
        {count_from(0, BATCHES // THREADS * THREADS - 1)}
        INSERT INTO span_batches
        SELECT i + 1, {START >> 20} * 1048576 + i / {THREADS}, {mix("i", 10)} * 1048576 + i, 0, ({1 << 50}) + i * 1000, 1 + i % {THREADS}, {START} + i / {THREADS} * {batch}, 0, 2,
            {batch}, 6, 0, {batch}, '[[1,0,0,{batch},1000]' || {children} || ']'
        FROM n""")
    db.execute("COMMIT")
    db.execute("PRAGMA optimize")
    db.close()


def find_file(root, samples, runs):
    """The generated file, from the cache if it is there."""
    folder = os.environ.get("QUERYPROF_CACHE_DIR") or os.path.join(os.path.expanduser("~"), ".cache", "queryprof")
    os.makedirs(folder, exist_ok=True)
    schema = os.path.join(root, "sql", "schema", "store_schema.sql")
    with open(os.path.join(root, "src", "store", "file", "schema.h"), encoding="utf-8") as file:
        version = re.search(r"STORE_SCHEMA_VERSION (\d+)", file.read())[1]
    key = hashlib.sha256()
    for name in (schema, os.path.abspath(__file__)):
        with open(name, "rb") as file:
            key.update(re.sub(rb"^.*?\nSTART = |def find_file.*", b"", file.read(), flags=re.DOTALL))
    path = os.path.join(folder, f"reading-{samples}-{runs}-{key.hexdigest()[:12]}.trace")
    if not os.path.exists(path):
        print(f"generating {path}", file=sys.stderr, flush=True)
        if os.path.exists(path + ".part"):
            os.unlink(path + ".part")
        make(path + ".part", schema, version, samples, runs)
        os.rename(path + ".part", path)
    return path


def commands(path):
    """The arguments of each command by name. The run, the statement and the trace exist in the generated file."""
    run, statement = "00000003-", f"{1000:016x}"
    yield "findings", ["findings", path]
    yield "queries", ["queries", path]
    yield "queries --by wall", ["queries", path, "--by", "wall"]
    yield "queries --by label:route", ["queries", path, "--by", "label:route"]
    yield "queries --statements", ["queries", path, "--statements"]
    yield "queries --statements --label", ["queries", path, "--statements", "--label", "route=/r6"]
    yield "queries --failed", ["queries", path, "--failed"]
    yield "queries --regressed", ["queries", path, "--regressed"]
    yield "report", ["report", path]
    yield "report --type wall", ["report", path, "--type", "wall"]
    yield "report --query", ["report", path, "--query", run]
    yield "report --statement", ["report", path, "--statement", statement]
    yield "report --like --last", ["report", path, "--like", "orders_1%", "--last", "1000"]
    yield "plan", ["plan", path]
    yield "plan --statement", ["plan", path, "--statement", statement]
    yield "plan --statement --opcodes", ["plan", path, "--statement", statement, "--opcodes"]
    yield "locks", ["locks", path]
    yield "traces", ["traces", path]
    yield "traces --by cpu", ["traces", path, "--by", "cpu"]
    yield "trace", ["trace", path, "{trace}"]
    yield "trace --samples", ["trace", path, "{trace}", "--samples"]
    yield "diff, the file by itself", ["diff", path, path]
    yield "diff --at the half", ["diff", path, "--at", "{half}"]
    for table in ("trace_log", "query_log", "statement_stats", "lock_waits", "transaction_log", "span_log", "traces"):
        yield f"sql, rows of {table}", ["sql", path, f"SELECT count(*) FROM {table}"]
    for view in ("top_functions", "top_stacks", "top_queries", "statement_plans"):
        yield f"sql, {view}", ["sql", path, f"SELECT * FROM {view} LIMIT 20"]
    for form in ("collapsed", "pprof", "speedscope", "flamegraph", "json", "perfetto", "otlp", "otlp-traces", "label-history"):
        yield f"export {form}", ["export", path, "--format", form, "-o", "{out}"]
    yield "export pprof --plan", ["export", path, "--format", "pprof", "--plan", "-o", "{out}"]


def measure(words, out, limit):
    """Returns exit status, seconds, CPU seconds, MB. The command is ended after `limit` s of CPU time."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def unpacked(path):
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    hashed = hashlib.sha256()
    with (gzip.open if packed else open)(path, "rb") as file:
        while part := file.read(1 << 20):
            hashed.update(part)
    return hashed.digest()


def differing(folder, other):
    """The names of the files that differ in the other folder, or that it lacks."""
    return [name for name in sorted(os.listdir(folder)) if not os.path.exists(os.path.join(other, name))
            or unpacked(os.path.join(folder, name)) != unpacked(os.path.join(other, name))]


def print_table(arguments, samples, runs):
    path = find_file(arguments.root, samples, runs)
    budget = 1 if samples <= 10**6 else 8
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as db:
        trace = db.execute("SELECT printf('%016x%016x', trace_hi, trace_lo) FROM span_batches WHERE id = 70").fetchone()[0]
    half = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime((START + samples * STEP // 2) / 1e9))
    print(f"reading, {samples} samples, {runs} runs, {os.path.getsize(path) / 1e6:.0f} MB")
    met = count = 0
    for name, words in commands(path):
        if arguments.only not in name:
            continue
        kept = os.path.join(arguments.keep, f"{samples}-" + re.sub(r"\W+", "-", name)) if arguments.keep else os.devnull
        words = [word.format(trace=trace, half=half, out=kept + ".out" if arguments.keep else os.devnull) for word in words]
        with open(kept, "wb") as out:
            code, wall, cpu, memory = measure([arguments.queryprof, *words], out, 15 * budget)
        ended = code == -signal.SIGKILL
        if code and not ended:
            sys.exit(f"{name}: exit status {code}: {' '.join(words)}")
        is_met = not ended and cpu <= budget and memory <= 300
        met, count = met + is_met, count + 1
        print(f"  {name:32} {wall:7.2f} s {cpu:7.2f} s CPU {memory:7.0f} MB  (budget {budget} s CPU, 300 MB)"
              + ("" if is_met else " * (ended)" if ended else " *"), flush=True)
    print(f"  within the budget                {met:7}  (of {count})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queryprof")
    parser.add_argument("root")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--same")
    arguments = parser.parse_args()
    if arguments.same and not arguments.keep:
        parser.error("--same needs --keep, with another folder")
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    one = arguments.samples or arguments.runs
    for samples, runs in [(arguments.samples or 920000, arguments.runs or 26700)] if one else SIZES:
        print_table(arguments, samples, runs)
    differ = differing(arguments.keep, arguments.same) if arguments.same else []
    if differ:
        sys.exit("printed something else: " + ", ".join(differ))


if __name__ == "__main__":
    main()
