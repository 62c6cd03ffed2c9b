#!/usr/bin/env bash
# Runs the tests on one stack, or on every stack that this machine has a Python for.
#
# usage: scripts/test.sh any|old|new|all [PYTEST ARGUMENT ...]
set -euo pipefail
cd "$(dirname "$0")/.."

stack=$1
shift
if (($# == 0)); then  # the whole suite: a process for each of up to four cores, each of which needs about 2 GB
  cores=$(getconf _NPROCESSORS_ONLN)
  set -- -n "$((cores < 4 ? cores : 4))" --dist loadfile
fi

environment() {  # of a stack: prints its python
  local base
  base=$(scripts/find_python.sh "$1") && "$base" scripts/environment.py test
}

run() {
  local python
  python=$(environment "$1") || return 1
  "$python" -c 'import sys, importlib.metadata as metadata
print("== Python %d.%d.%d" % sys.version_info[:3], "with TensorFlow", metadata.version("tensorflow"), "==", flush=True)'
  "$python" -m pytest "${@:2}"
}

if [[ $stack != all ]]; then
  run "$stack" "$@"
  exit
fi

environment new >/dev/null 2>&1 &  # while the old stack is tested; what goes wrong is told when its turn comes
failed=()
for stack in old new; do
  [[ $stack == old ]] || wait
  if ! reason=$(scripts/find_python.sh "$stack" 2>&1 >/dev/null); then
    echo "== the $stack stack is left out: ${reason#error: } =="
  elif ! run "$stack" "$@"; then
    failed+=("$stack")
  fi
done
if ((${#failed[@]})); then
  echo "failed on: ${failed[*]}" >&2
  exit 1
fi
scripts/find_python.sh any >/dev/null
