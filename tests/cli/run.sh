#!/usr/bin/env bash
# Runs one test script in an empty folder of its own, which is removed afterwards. Usage: run.sh SCRIPT
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export TESTS_CLI
TESTS_CLI=$(dirname "$(readlink -f "$0")")
cd "$folder"
bash "$1"
