#!/bin/bash
# Gets Flink's jars by package name (about 330 MB to download) and compiles the sources beside this file against them.
# usage: setup.sh      prints the folder; needs pip and a JDK from 17 on
# EBBFLOW_FLINK names the folder (default: ~/.cache/ebbflow-flink); jars that are there in lib/ are used as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${EBBFLOW_FLINK:-$HOME/.cache/ebbflow-flink}
version=2.3.0
mkdir -p "$dir"
if [ ! -d "$dir/lib" ]; then
  tmp=$(mktemp -d "$dir/get.XXXX")
  trap 'rm -rf "$tmp"' EXIT
  python3 -m pip download -q "apache-flink-libraries==$version" --no-deps --no-binary :all: -d "$tmp"
  tar xzf "$tmp"/apache*flink*libraries-$version.tar.gz -C "$tmp"
  mv "$tmp"/apache*flink*libraries-$version/deps/lib "$dir/lib"
fi
classes="$dir/nexmark-classes"
if [ ! -d "$classes" ] || [ -n "$(find "$here/src" -newer "$classes" -name '*.java')" ]; then
  new=$(mktemp -d "$dir/classes.XXXX")
  mkdir -p "$new/META-INF/services"
  javac -nowarn -cp "$dir/lib/*" -d "$new" "$here"/src/*.java 2>&1 | grep -v '^Note:' >&2 || true
  printf '%s\n' 'NexmarkSource$Factory' 'NexmarkExtras$FoldFactory' 'NexmarkExtras$SideInputFactory' \
    > "$new/META-INF/services/org.apache.flink.table.factories.Factory"
  rm -rf "$classes" && mv "$new" "$classes"
fi
echo "$dir"
