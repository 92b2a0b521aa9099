#!/bin/sh
# Runs every test, with the pytest that is named: the comparison with kube-scheduler, which mostly waits, beside all
# others, and what compares speeds alone, at the end.
set -u

pytest=$1
output=$(mktemp)
trap 'rm -f "$output"' EXIT

"$pytest" tests/truth >"$output" 2>&1 &
truth=$!
failed=
"$pytest" --ignore=tests/truth --ignore=tests/loadtest || failed=yes
wait "$truth" || failed=yes
cat "$output"
"$pytest" tests/loadtest || failed=yes
[ -z "$failed" ]
