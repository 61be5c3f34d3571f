#!/usr/bin/env python3
"""Ebbflow and Flink on the Nexmark queries: the same events, one machine, run after run in turn.

usage: benches/nexmark-flink.py [--queries q0,q5] [--events 5000000] [--warm 1000000] [--parallelism 1]
                                [--mini-batch] [--file] [--repeat 1] [--json results.jsonl]

EBBFLOW names the binary (default: target/dist/ebbflow, then target/release/ebbflow); EBBFLOW_FLINK the folder
with Flink's jars in lib/, which benches/flink/setup.sh fills by package name when it is empty (needs pip and a
JDK from 17 on). Each run is a process of its own. Flink first runs --warm events in the same process, untimed.
Seconds are those of the job, CPU seconds those of the whole process while it runs; planning is in neither's
seconds and in both's CPU seconds. Flink's memory is the most that was alive after a collection, Ebbflow's the
most that the process held.

--file reads the bids of q0 (and what else --queries says) from JSON lines through 'filesystem' and 'json' on
both sides. The file is made with Ebbflow.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
EXAMPLES = ROOT / "examples" / "nexmark"
# Flink refuses q6
ALL = [f"q{i}" for i in range(24) if i != 6]
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
}


def binary():
    if "EBBFLOW" in os.environ:
        return os.environ["EBBFLOW"]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for profile in ("dist", "release"):
        path = target / profile / "ebbflow"
        if path.exists():
            return str(path)
    sys.exit("no binary: cargo build --profile dist, or EBBFLOW=path")


def last_json(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr[-3000:]}")
    return json.loads(lines[-1])


def ebbflow(query, args, ddl):
    command = [binary(), "nexmark", "--json", "--queries", query, "--events", str(args.events)]
    command += ["--parallelism", str(args.parallelism)]
    if ddl:
        command += ["--ddl", str(ddl)]
    if args.mini_batch:
        for key, value in MINI_BATCH.items():
            command += ["-D", f"{key}={value}"]
    return last_json(command)


def flink(query, args, ddl, folder):
    run = f"p{args.parallelism}" + ("mb" if args.mini_batch else "")
    command = [HERE / "flink" / "run.sh", "FlinkNexmark", f"ddl={ddl or EXAMPLES / 'ddl.sql'}"]
    command += [f"queries={EXAMPLES / (query + '.sql')}", f"n={args.events}", f"warm={args.warm}"]
    # a file is read as a whole: the warm-up reads it too
    command += [f"runs={run}", f"dir={folder}"]
    result = last_json(command)
    if "error" in result:
        print(f"{query}: Flink: {result['error']}", file=sys.stderr)
        return None
    return result


def side_input(folder):
    with open(folder / "side_input.csv", "w") as out:
        for key in range(10_000):
            out.write(f"{key},value-{key}\n")


def json_lines(folder, events):
    """The events as a file of JSON lines, and a script with the tables that reads it."""
    ddl = (EXAMPLES / "ddl.sql").read_text()
    start, end = ddl.index(") WITH ("), ddl.index("CREATE VIEW person")
    columns = ddl[ddl.index("event_type INT") : ddl.index("  `dateTime` AS CASE")].rstrip().rstrip(",")
    script = ddl[:end].replace("${EVENTS_NUM}", str(events)) + f"""
CREATE TABLE file (
  {columns}
) WITH ('connector' = 'filesystem', 'path' = '{folder}/events', 'format' = 'json');
INSERT INTO file SELECT event_type, person, auction, bid FROM nexmark;
"""
    subprocess.run([binary(), "run", "-"], input=script, text=True, check=True)
    files = [f for f in (folder / "events").iterdir() if not f.name.startswith((".", "_"))]
    size = sum(f.stat().st_size for f in files)
    reading = f") WITH ('connector' = 'filesystem', 'path' = '{folder}/events', 'format' = 'json');\n\n"
    path = folder / "ddl.sql"
    path.write_text(ddl[:start] + reading + ddl[end:])
    return path, size


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--warm", type=int, default=1_000_000)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--mini-batch", action="store_true")
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    queries = args.queries.split(",") if args.queries else (["q0"] if args.file else ALL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        side_input(folder)
        ddl, size = json_lines(folder, args.events) if args.file else (None, 0)
        compare(queries, args, folder, ddl, size)


def compare(queries, args, folder, ddl, size):
    print("query   Flink s  CPU s  k events/CPU s  live MB | Ebbflow s  CPU s  k events/CPU s  peak MB | CPU ratio  time ratio")
    cpu_ratios, time_ratios = [], []
    for query in queries:
        pairs = []
        for _ in range(args.repeat):
            theirs = flink(query, args, ddl, folder)
            ours = ebbflow(query, args, ddl)
            if args.json:
                with open(args.json, "a") as out:
                    out.write(json.dumps({"flink": theirs, "ebbflow": ours}) + "\n")
            if theirs:
                pairs.append((theirs, ours))
        if not pairs:
            continue
        # the best of each, as the machine may be busy
        theirs = min((t for t, _ in pairs), key=lambda r: r["cpu_s"])
        ours = min((o for _, o in pairs), key=lambda r: r["cpu_s"])
        cpu = theirs["cpu_s"] / max(ours["cpu_s"], 0.005)
        time = theirs["net_s"] / max(ours["net_s"], 0.001)
        cpu_ratios.append(cpu)
        time_ratios.append(time)
        print(
            f"{query:5} {theirs['net_s']:9.2f} {theirs['cpu_s']:6.2f} {args.events / theirs['cpu_s'] / 1e3:15.0f}"
            f" {theirs['live_mb']:8} | {ours['net_s']:9.2f} {ours['cpu_s']:6.2f}"
            f" {args.events / max(ours['cpu_s'], 0.005) / 1e3:15.0f} {(ours['peak_bytes'] or 0) / 2**20:8.0f} |"
            f" {cpu:9.1f} {time:11.1f}",
            flush=True,
        )
        if size:
            print(f"      {size / 1e6:.0f} MB of JSON: Flink {size / 1e6 / theirs['cpu_s']:.0f}, Ebbflow {size / 1e6 / max(ours['cpu_s'], 0.005):.0f} MB a CPU second")
    print(f"geometric mean of {len(cpu_ratios)}: {geometric_mean(cpu_ratios):.1f} by CPU time, {geometric_mean(time_ratios):.1f} by time")


if __name__ == "__main__":
    main()
