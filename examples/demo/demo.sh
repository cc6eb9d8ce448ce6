#!/bin/sh
# The main job, end to end: start a gateway, upload a plugin, send events, show what landed where.
# Usage: demo.sh [once]   DEMO_SET="path=value ..." are settings for the gateway (http.listen=127.0.0.1:0 works).
set -eu
cd "$(dirname "$0")/../.."
data=${DEMO_DATA:-headgate-data}

set -- "${1:-}"
once=$1
set -- serve --data "$data"
for setting in ${DEMO_SET:-}; do set -- "$@" --set "$setting"; done
mkdir -p "$data"
rm -f "$data/run.json"
./bin/headgate "$@" >"$data/demo.log" 2>&1 &
gateway=$!
trap 'kill -TERM $gateway 2>/dev/null; wait $gateway 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tries=0
until [ -s "$data/run.json" ]; do
	if ! kill -0 $gateway 2>/dev/null || [ $tries -ge 300 ]; then
		echo "demo: the gateway did not start; its log ($data/demo.log) ends with:" >&2
		tail -n 5 "$data/demo.log" >&2
		exit 1
	fi
	tries=$((tries + 1))
	sleep 0.1
done
listen() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$data/run.json"; }
HEADGATE_URL=http://$(listen http)
HEADGATE_ADMIN_URL=http://$(listen admin)
export HEADGATE_URL HEADGATE_ADMIN_URL
# show prints a command as it can be typed, and runs it.
show() {
	line="\$ headgate"
	for arg; do
		case $arg in
		*[!A-Za-z0-9_./:=-]*) line="$line '$arg'" ;;
		*) line="$line $arg" ;;
		esac
	done
	echo "$line"
	./bin/headgate "$@"
	echo
}

show plugin push accesslog examples/plugins/accesslog/accesslog.wasm
show plugin activate --stream demo accesslog --config '{"drop_status_from":500}'
show send --stream demo examples/demo/access-log.ndjson

echo "$ headgate tail --stream demo --from start --wait 1s -o json     # counted by partition"
./bin/headgate tail --stream demo --from start --wait 1s -o json |
	sed -n 's/.*"partition":\([0-9]*\).*"key":"\([^"]*\)".*/\1 \2/p' | sort -n | awk '
	{ events[$1]++; keys[$1] += !seen[$0]++ }
	END { for (p = 0; p < 16; p++) printf "  partition %2d: %4d events of %2d keys\n", p, events[p], keys[p] }'
echo

if [ "$once" = once ]; then
	trap - EXIT
	kill -TERM $gateway
	wait $gateway
	echo "demo: drained and stopped"
	exit 0
fi
echo "demo: running at $HEADGATE_URL (admin ${HEADGATE_ADMIN_URL##*:}), Ctrl-C stops it"
wait $gateway
