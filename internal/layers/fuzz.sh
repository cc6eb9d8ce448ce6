#!/bin/sh
# Runs each fuzz target of the module for the given time (default 10s), one after the other.
set -eu
cd "$(dirname "$0")/../.."
grep -rhoE --include='*_test.go' -l '^func Fuzz' . | sort | while read -r file; do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $(dirname "$file") $target"
		# Without the bound on minimizing, Go spends most of the time making interesting inputs shorter.
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" -fuzzminimizetime 10x "$(dirname "$file")"
	done
done
