package abi

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page that strangers implement has the numbers of this package.
func TestL17PageOfTheBorderHasTheseNumbers(t *testing.T) {
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{
		row(CtlSize, "u32", "size"), row(CtlCount, "u32", "count"), row(CtlFirst, "u32", "first"), row(CtlDone, "u32", "done"),
		row(CtlData, "u32", "data"), row(CtlDataLen, "u32", "data_len"), row(CtlEvents, "u32", "events"), row(CtlResults, "u32", "results"),
		row(CtlNow, "u64", "now"), row(CtlFlags, "u32", "flags"), row(CtlStream, "u32", "stream"), row(CtlHeader, "u32", "headers"),
		row(CtlHeaderLen, "u32", "headers_len"), row(CtlBudget, "u32", "budget"), row(ControlSize-4, "u32", ""),
		row(ResKey, "u32", "key"), row(ResKeyLen, "u16", "key_len"), row(ResVerdict, "u8", "verdict"), row(ResCode, "u8", "code"),
		row(ResValue, "u32", "value"), row(ResValueLen, "u32", "value_len"),
		fmt.Sprintf("%d keep, %d drop, %d reject, %d keep with a replaced value", VerdictKeep, VerdictDrop, VerdictReject, VerdictReplace),
		fmt.Sprintf("%d sets keys, %d drops, %d replaces, %d keeps state", SetsKeys, Drops, Replaces, KeepsState), fmt.Sprintf("%d deterministic", Deterministic),
		fmt.Sprintf("%d debug, %d info, %d warn, %d error", LevelDebug, LevelInfo, LevelWarn, LevelError),
		fmt.Sprintf("n, 1 to %d", MaxEvents), fmt.Sprintf("at most %d;", MaxKey), fmt.Sprintf("counter 0 to %d", MaxCounters-1),
		fmt.Sprintf("at least %d zero bytes", DataPadding), fmt.Sprintf("alignment is %d", Alignment),
		fmt.Sprintf("%d x data_len + %d KiB", OutputFactor, OutputExtra>>10), fmt.Sprintf("result, %d bytes", ResultSize),
		fmt.Sprintf("%d: another instance failed", FlagReplay), fmt.Sprintf("%d: nothing will be stored", FlagDryRun), fmt.Sprintf("called `%s`", TestSection),
	}
	for _, name := range []string{ExportMemory, ExportVersion, ExportAlloc, ExportProcess, ExportInit, ExportFree, ExportInitialize} {
		rows = append(rows, "| `"+name+"` |")
	}
	for _, want := range rows {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/abi.md has no %q", want)
		}
	}
}

func row(offset int, kind, name string) string {
	return strings.TrimSpace(fmt.Sprintf("| %d | %s | %s", offset, kind, name))
}
