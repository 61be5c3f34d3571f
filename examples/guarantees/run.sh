#!/bin/bash
# Shows what each guarantee means when a process is killed. See README.md.
set -eu
cd "$(dirname "$0")"
ebbflow="${EBBFLOW:-${CARGO_TARGET_DIR:-../../target}/debug/ebbflow}"
[ -x "$ebbflow" ] || ebbflow="$(command -v ebbflow)" || { echo "build it first: cargo build"; exit 1; }

checkpoints() { find "$1/checkpoints" -name '*manifest' 2>/dev/null | sort | cksum; }
visible() { find "$1/out" -name 'part-*' 2>/dev/null | wc -l; }
hidden() { find "$1/out" -name '.part-*' -size +0 2>/dev/null | wc -l; }

demonstrate() { # mode, guarantee of the sink
  if ! "$ebbflow" run -e "SET 'execution.checkpointing.mode' = '$1'" > /dev/null 2>&1; then
    printf '%-14s this version does not know it\n' "$1"
    return
  fi
  local dir killed; dir="$(mktemp -d)"
  sed "s|DIR|$dir|g; s|MODE|$1|; s|SINK|$2|" job.sql > "$dir/job.sql"
  for kill in 0 1 2; do
    "$ebbflow" run "$dir/job.sql" > "$dir/log" 2>&1 &
    local pid=$! taken=0 last before; last="$(checkpoints "$dir")"; before="$(visible "$dir")"
    killed=no
    # After some checkpoints: wait for rows that the last one does not know of, and kill.
    while kill -0 $pid 2>/dev/null; do
      local now; now="$(checkpoints "$dir")"
      if [ "$now" != "$last" ]; then
        last="$now"; taken=$((taken + 1)); before="$(visible "$dir")"
      elif [ $taken -ge $kill ]; then
        if [ "$2" = at-least-once ]; then
          [ "$(visible "$dir")" -le "$before" ] || { kill -9 $pid; killed=yes; break; }
        else
          [ "$(hidden "$dir")" -eq 0 ] || { kill -9 $pid; killed=yes; break; }
        fi
      fi
      sleep 0.01
    done
    wait $pid 2>/dev/null || true
    [ $killed = yes ] || break
  done
  [ $killed = no ] || "$ebbflow" run "$dir/job.sql" > "$dir/log" 2>&1
  find "$dir/out" -type f -name 'part-*' -exec cat {} + | sort -n > "$dir/found"
  local lost doubled
  lost=$(seq 5000 | sort | comm -23 - <(sort -u "$dir/found") | wc -l)
  doubled=$(uniq -d "$dir/found" | wc -l)
  printf '%-14s lost %4d of 5000   doubled %4d\n' "$1" "$lost" "$doubled"
  rm -r "$dir"
}

demonstrate EXACTLY_ONCE exactly-once
demonstrate AT_LEAST_ONCE at-least-once
demonstrate AT_MOST_ONCE exactly-once
