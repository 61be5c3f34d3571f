#!/usr/bin/env python3
"""Ebbflow and Flink on the same topics of one Kafka broker, run after run in turn.

usage: benches/kafka-flink.py [--events 2000000] [--parallelism 1] [--repeat 3] [--shapes q0,raw]
                              [--compression none] [--check] [--json results.jsonl]

A broker is started on loopback and the Nexmark events are written into a topic as JSON, with as many
partitions as --parallelism says. Both then read all that is there:

  q0    the bids' columns go nowhere: reading, decoding and filtering
  raw   every record is one STRING and goes nowhere: what the client and the broker cost without a format

CPU seconds are those of the whole process while it runs, and beside them the broker's at the same time.
Flink first reads the topic once in the same process, untimed. --check compares the rows of both by a hash.

EBBFLOW and EBBFLOW_FLINK are as for nexmark-flink.py. EBBFLOW_KAFKA_JARS names the folder of the broker's
jars. What is missing is fetched from Maven Central by Maven (needs mvn and a JDK from 17 on).
"""

import argparse
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path.home() / ".cache"
JARS = pathlib.Path(os.environ.get("EBBFLOW_KAFKA_JARS", CACHE / "ebbflow-kafka"))
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("nexmark_flink", HERE / "nexmark-flink.py")
nexmark = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nexmark)

PROPERTIES = """
log.dirs={data}
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def quietly(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}")
    return done.stdout


def broker_jars():
    if not list(JARS.glob("kafka_*.jar")):
        pom = HERE.parent / "tests" / "kafka" / "pom.xml"
        quietly(["mvn", "-q", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"])
    return JARS


def connector_jar():
    folder = pathlib.Path(os.environ.get("EBBFLOW_FLINK", CACHE / "ebbflow-flink")) / "kafka"
    name = "-".join(CONNECTOR.split(":")[1:]) + ".jar"
    if not (folder / name).exists():
        copy = ["mvn", "-q", "dependency:copy", f"-Dartifact={CONNECTOR}", f"-DoutputDirectory={folder}"]
        quietly(copy, cwd=tempfile.gettempdir())
    return folder / name


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Broker:
    """A broker that lives as long as the bench."""

    def __init__(self, folder):
        self.log = folder / "broker.log"
        port, controller = free_ports(2)
        properties = folder / "server.properties"
        properties.write_text(PROPERTIES.format(data=folder / "data", port=port, controller=controller))
        java = ["java", "-Xmx1g", "-cp", f"{broker_jars()}/*"]
        quietly(java + ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", properties])
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(java + ["kafka.Kafka", properties], stdout=log, stderr=log)
        self.address = f"127.0.0.1:{port}"
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"the broker has ended:\n{self.log.read_text()[-3000:]}")
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        self.end()
        sys.exit("the broker does not start")

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def topic(self, name, partitions):
        tool = ["java", "-cp", f"{broker_jars()}/*", "org.apache.kafka.tools.TopicCommand"]
        tool += ["--bootstrap-server", self.address, "--topic", name]
        quietly(tool + ["--delete", "--if-exists"])
        quietly(tool + ["--create", "--partitions", str(partitions), "--replication-factor", "1"])

    def cpu_seconds(self):
        """User and system time so far."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def options(broker, topic, more):
    all = {"connector": "kafka", "topic": topic, "properties.bootstrap.servers": broker.address} | more
    return "WITH (" + ", ".join(f"'{key}' = '{value}'" for key, value in all.items()) + ")"


def fill(broker, topic, args, folder):
    """Writes the events as JSON, with Ebbflow; answers the size of the topic in bytes."""
    broker.topic(topic, args.parallelism)
    ddl = (nexmark.EXAMPLES / "ddl.sql").read_text()
    start, end = ddl.index(") WITH ("), ddl.index("CREATE VIEW person")
    columns = ddl[ddl.index("event_type INT") : ddl.index("  `dateTime` AS CASE")].rstrip().rstrip(",")
    writing = options(broker, topic, {"format": "json", "properties.compression.type": args.compression})
    script = ddl[:end].replace("${EVENTS_NUM}", str(args.events)) + f"""
CREATE TABLE events ({columns}) {writing};
INSERT INTO events SELECT event_type, person, auction, bid FROM nexmark;
"""
    quietly([nexmark.binary(), "run", "-"], input=script)
    logs = folder.glob(f"data/{topic}-*/*.log")
    return sum(log.stat().st_size for log in logs)


def ddl(shape, broker, topic):
    reading = {"scan.startup.mode": "earliest-offset", "scan.bounded.mode": "latest-offset"}
    if shape == "raw":
        reading = options(broker, topic, reading | {"format": "raw"})
        nothing = ", ".join(f"CAST(NULL AS BIGINT) AS {c}" for c in ("auction", "bidder", "price"))
        return f"""CREATE TABLE records (line STRING) {reading};
CREATE VIEW bid AS SELECT {nothing}, CAST(NULL AS TIMESTAMP(3)) AS `dateTime`, line AS extra FROM records;
"""
    text = (nexmark.EXAMPLES / "ddl.sql").read_text()
    start, end = text.index(") WITH ("), text.index("CREATE VIEW person")
    return text[:start] + ") " + options(broker, topic, reading | {"format": "json"}) + ";\n\n" + text[end:]


def ebbflow(path, args, more=()):
    command = [nexmark.binary(), "nexmark", "--json", "--queries", "q0", "--events", str(args.events)]
    command += ["--parallelism", str(args.parallelism), "--ddl", str(path)]
    return nexmark.last_json(command + list(more))


def flink(path, args, more=()):
    command = [HERE / "flink" / "run.sh", "FlinkNexmark", f"ddl={path}"]
    command += [f"queries={nexmark.EXAMPLES / 'q0.sql'}", f"n={args.events}", f"runs=p{args.parallelism}"]
    # the warm-up reads the topic as a whole
    warm = [] if any(m.startswith("warm=") for m in more) else [f"warm={args.events}"]
    result = nexmark.last_json(command + warm + list(more), env=os.environ | {"EXTRA_JARS": str(connector_jar())})
    if "error" in result:
        sys.exit(f"Flink: {result['error']}")
    return result


def check(path, args, shape):
    ours = ebbflow(path, args, ["--sink", "fold"])
    theirs = flink(path, args, ["sink=fold", "warm=0"])
    same = (ours["rows"], ours["hash"]) == (theirs["rows"], theirs["hash"])
    print(f"{shape:4} {ours['rows']} rows, {'the same' if same else 'NOT the same'} in both", flush=True)
    if not same:
        sys.exit(f"Flink: {theirs}\nEbbflow: {ours}")


def measured(run, broker):
    before = broker.cpu_seconds()
    result = run()
    result["broker_cpu_s"] = broker.cpu_seconds() - before
    return result


def compare(shape, path, args, broker, size):
    pairs = []
    for _ in range(args.repeat):
        theirs = measured(lambda: flink(path, args), broker)
        # it has read the topic twice
        theirs["broker_cpu_s"] /= 2
        ours = measured(lambda: ebbflow(path, args), broker)
        pairs.append((theirs, ours))
        if args.json:
            with open(args.json, "a") as out:
                out.write(json.dumps({"shape": shape, "flink": theirs, "ebbflow": ours}) + "\n")
    # the best of each, as the machine may be busy
    theirs = min((t for t, _ in pairs), key=lambda r: r["cpu_s"])
    ours = min((o for _, o in pairs), key=lambda r: r["cpu_s"])
    columns = [shape.ljust(5)]
    for r in (theirs, ours):
        rate = args.events / max(r["cpu_s"], 0.005) / 1e3
        columns.append(f"{r['net_s']:9.2f} {r['cpu_s']:6.2f} {rate:15.0f} {r['broker_cpu_s']:9.2f}")
    cpu = theirs["cpu_s"] / max(ours["cpu_s"], 0.005)
    seconds = theirs["net_s"] / max(ours["net_s"], 0.001)
    print(" | ".join(columns) + f" | {cpu:9.1f} {seconds:11.1f}", flush=True)
    speed = [size / 1e6 / max(r["cpu_s"], 0.005) for r in (theirs, ours)]
    print(f"      {size / 1e6:.0f} MB in the log: Flink {speed[0]:.0f}, Ebbflow {speed[1]:.0f} MB a CPU second", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shapes", default="q0,raw")
    parser.add_argument("--compression", default="none")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    shapes = args.shapes.split(",")
    if unknown := set(shapes) - {"q0", "raw"}:
        parser.error(f"unknown shapes: {', '.join(sorted(unknown))}")
    connector_jar()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        broker = Broker(folder)
        try:
            topic = f"ebbflow-bench-{args.compression}"
            size = fill(broker, topic, args, folder)
            paths = {shape: folder / f"{shape}.sql" for shape in shapes}
            for shape, path in paths.items():
                path.write_text(ddl(shape, broker, topic))
                if args.check:
                    check(path, args, shape)
            print("shape   Flink s  CPU s  k events/CPU s  broker s | Ebbflow s  CPU s  k events/CPU s  broker s | CPU ratio  time ratio")
            for shape, path in paths.items():
                compare(shape, path, args, broker, size)
        finally:
            broker.end()


if __name__ == "__main__":
    main()
