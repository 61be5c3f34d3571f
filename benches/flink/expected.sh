#!/bin/bash
# Prints what Flink makes of each query on so many events: query, rows and hash of the folded result.
# usage: expected.sh 20000 > tests/nexmark/flink-20000.tsv
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
events=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for key in $(seq 0 9999); do echo "$key,value-$key"; done > "$dir/side_input.csv"
queries=$(ls "$here"/../../examples/nexmark/q*.sql | sort -V)
# not q6, which Flink refuses, and not q12, whose windows are those of the clock
queries=$(echo "$queries" | grep -v -e '/q6.sql' -e '/q12.sql' | paste -sd,)
echo "# Flink 2.3: query, rows and hash of the folded result of $events events; benches/flink/expected.sh makes it."
"$here/run.sh" FlinkNexmark "ddl=$here/../../examples/nexmark/ddl.sql" "queries=$queries" "n=$events" warm=0 sink=fold "dir=$dir" |
  python3 -c '
import json, sys
for line in sys.stdin:
    run = json.loads(line)
    if "error" in run:
        sys.exit(run["query"] + ": " + run["error"])
    print(run["query"], run["rows"], run["hash"], sep="\t")
'
