#!/usr/bin/env bash
# Prints the path of a Python that albert_tf supports and that can make virtual environments.
#
# usage: scripts/find_python.sh [any|old|new]
#   any  $PYTHON where it is set; else the first that fits of python3 and python3.x on PATH and in pyenv
#   old  one of 3.9 - 3.11, which take TensorFlow 2.15
#   new  one of 3.12 - 3.13, which take TensorFlow 2.18 - 2.21
set -euo pipefail

stack=${1:-any}
case $stack in
  any) lowest=9 highest=13 ;;
  old) lowest=9 highest=11 ;;
  new) lowest=12 highest=13 ;;
  *) echo "usage: $0 [any|old|new]" >&2; exit 2 ;;
esac

without_venv=
# A command that is there can still fail to run: pyenv keeps a shim for every version it knows, active or not.
fits() {
  local version
  version=$("$1" -c 'import sys; print("%d %d" % sys.version_info[:2])' 2>/dev/null </dev/null) || return 1
  [[ $version == 3\ * ]] && ((${version#3 } >= lowest && ${version#3 } <= highest)) || return 1
  "$1" -c 'import ensurepip, venv' 2>/dev/null </dev/null && return 0
  without_venv=$1
  return 1
}

if [[ $stack == any && -n ${PYTHON:-} ]]; then
  candidates=("$PYTHON")
else
  candidates=(${PYTHON:+"$PYTHON"} python3 python3.12 python3.11 python3.13 python3.10 python3.9 python)
  for candidate in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
    candidates+=("$candidate")
  done
fi
for candidate in "${candidates[@]}"; do
  if fits "$candidate"; then
    "$candidate" -c 'import sys; print(sys.executable)' </dev/null
    exit 0
  fi
done

if [[ -n $without_venv ]]; then
  echo "error: $without_venv cannot make virtual environments (on Debian and Ubuntu: apt-get install python3-venv)" >&2
elif [[ $stack == any && -n ${PYTHON:-} ]]; then
  echo "error: PYTHON=$PYTHON is not a Python 3.9 - 3.13 that runs" >&2
else
  echo "error: no Python 3.$lowest - 3.$highest found on PATH or in pyenv; name one with make PYTHON=/path/to/python3" >&2
fi
exit 1
