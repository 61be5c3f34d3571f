#!/bin/bash
# Prints the hashes of the first 10,000 events of the Java twin: src/connectors/nexmark/reference.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/run.sh" NexmarkSource 0 10000 | python3 -c '
import sys
print("# FNV-1a-64 of every hundred events as the Java twin prints them; benches/flink/reference.sh makes it.")
lines = sys.stdin.read().splitlines()
for i in range(0, len(lines), 100):
    h = 0xcbf29ce484222325
    for b in "\n".join(lines[i : i + 100]).replace("+I(", "(").encode():
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    print(f"{h:016x}")
'
