#!/bin/bash
# Runs a class of src/ with Flink's jars.
# usage: run.sh FlinkNexmark ddl=.. queries=.. [..]      (see the class)
#        run.sh NexmarkSource 0 100                      prints the first 100 events
# EXTRA_JARS: more of the class path
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$("$here/setup.sh")
opens=()
for p in lang net io nio lang.reflect text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  opens+=("--add-opens=java.base/java.$p=ALL-UNNAMED")
done
exec java "${opens[@]}" --add-opens=java.base/sun.nio.ch=ALL-UNNAMED "-Xmx${XMX:-6g}" -Duser.timezone=UTC \
  -cp "$dir/nexmark-classes:$dir/lib/*${EXTRA_JARS:+:$EXTRA_JARS}" "$@"
