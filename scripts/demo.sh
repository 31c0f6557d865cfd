#!/usr/bin/env bash
# The whole story of break 35-01 on real ranks: apply, run to the stall, hints, fix, check, revert,
# verify. It happens in a copy, so your own tree and progress stay as they are.
set -euo pipefail

cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tests"
cp -R pyproject.toml labs breaks "$copy"
cp -R tests/phase35 "$copy/tests/phase35"
cd "$copy"

expect() { # expect EXIT_CODE COMMAND...: show a command, run it, insist on its exit code
  local wanted=$1 code=0
  shift
  printf '\n$ %s\n' "$*"
  "$@" || code=$?
  if [ "$code" -ne "$wanted" ]; then
    printf 'demo: exit code %s, expected %s\n' "$code" "$wanted" >&2
    exit 1
  fi
}

expect 0 breaklab list
expect 0 breaklab run                                  # the healthy lab
expect 0 breaklab apply 35-01
expect 3 breaklab run --hang-timeout 5                 # 3: the ranks stall
expect 0 breaklab hint
expect 0 breaklab hint
expect 0 breaklab hint
expect 1 breaklab check                                # 1: not fixed yet
expect 0 breaklab reveal 35-01 --yes                   # a learner would find it alone
printf '\n$ # apply the fix\n'
breaklab reveal 35-01 --yes --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["fix_diff"], end="")' > fix.diff
(cd labs/phase35 && git apply ../../fix.diff)
expect 0 breaklab check
expect 0 breaklab run
expect 0 breaklab revert
expect 0 breaklab verify 35-01
