package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// toolchain returns the commands that make the project's module; an error names the tool that is missing and says how
// to get it.
func (p *project) toolchain() ([]buildStep, error) {
	out := p.Name + ".wasm"
	switch p.Language {
	case "go":
		return goSteps(out)
	case "rust":
		return rustSteps(out, p.path("build"))
	case "c":
		return cSteps(out)
	case "assemblyscript":
		return assemblyScriptSteps(out, p.dir)
	}
	return nil, usagef("%s: language %q: choose one of go, rust, c, assemblyscript", projectFile, p.Language)
}

func goSteps(out string) ([]buildStep, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("the tool go is not installed; get Go 1.24 or later from https://go.dev/dl, or by: apt-get install golang (Debian), brew install go (macOS)")
	}
	return []buildStep{{
		env:  []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off"},
		args: []string{"go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "."},
	}}, nil
}

// rustSteps compiles the SDK and the plugin without cargo, which Debian has in a package of its own.
func rustSteps(out, scratch string) ([]buildStep, error) {
	const target = "wasm32-unknown-unknown"
	rustc, found := findRustc(target)
	if rustc == "" && found {
		return nil, errors.New("rustc is installed, but not its target " + target + "; get it by: rustup target add " + target + ", or: apt-get install rustc libstd-rust-dev-wasm32 lld-14 (Debian 12)")
	}
	if rustc == "" {
		return nil, errors.New("the tool rustc is not installed; get Rust from https://rustup.rs and then: rustup target add " + target + ", or: apt-get install rustc libstd-rust-dev-wasm32 lld-14 (Debian 12)")
	}
	if err := os.MkdirAll(scratch, 0o777); err != nil {
		return nil, err
	}
	compile := func(more ...string) buildStep {
		return buildStep{args: append([]string{rustc, "--edition", "2021", "--target", target, "-C", "opt-level=3", "-C", "panic=abort", "-C", "codegen-units=1",
			"-C", "strip=symbols", "-C", "target-feature=+simd128,+bulk-memory"}, more...)}
	}
	return []buildStep{
		compile("--crate-name", "headgate", "--crate-type", "rlib", "-o", "build/libheadgate.rlib", "headgate/src/lib.rs"),
		compile("-C", "lto=fat", "--crate-name", "plugin", "--crate-type", "cdylib", "--extern", "headgate=build/libheadgate.rlib", "-o", out, "src/lib.rs"),
	}, nil
}

// findRustc returns the first rustc in the path that has the target; found is true when there is any.
func findRustc(target string) (rustc string, found bool) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		tool := filepath.Join(dir, "rustc")
		root, err := exec.Command(tool, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib", "rustlib", target)); err != nil {
			found = true
			continue
		}
		return tool, true
	}
	return "", found
}

func cSteps(out string) ([]buildStep, error) {
	const how = "get both by: apt-get install clang-19 lld-19 (Debian), brew install llvm lld (macOS)"
	for _, version := range []string{"-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14", ""} {
		clang, err := exec.LookPath("clang" + version)
		if err != nil || !hasWebAssembly(clang) {
			continue
		}
		if _, err := exec.LookPath("wasm-ld" + version); err != nil {
			if _, err := exec.LookPath("wasm-ld"); err != nil {
				return nil, fmt.Errorf("%s is installed, but not its linker wasm-ld%s; %s", filepath.Base(clang), version, how)
			}
		}
		return []buildStep{{args: []string{filepath.Base(clang), "--target=wasm32", "-O3", "-msimd128", "-mbulk-memory", "-nostdlib", "-ffreestanding", "-Wall",
			"-Wl,--no-entry", "-Wl,-z,stack-size=65536", "-Wl,--strip-all", "-I", "headgate", "-o", out, "plugin.c"}}}, nil
	}
	return nil, errors.New("no clang that compiles to WebAssembly is installed, with its linker wasm-ld; " + how)
}

// hasWebAssembly tells clang from those that were built without it, as Apple's is.
func hasWebAssembly(clang string) bool {
	targets, err := exec.Command(clang, "--print-targets").Output()
	return err == nil && strings.Contains(string(targets), "wasm32")
}

// assemblyScriptSteps takes the compiler from the folder, else from the path, else fetches it into the folder.
func assemblyScriptSteps(out, dir string) ([]buildStep, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return nil, errors.New("the tool node is not installed; get Node.js 20 or later from https://nodejs.org, or by: apt-get install nodejs npm (Debian), brew install node (macOS)")
	}
	compile := func(asc string) buildStep {
		return buildStep{args: []string{asc, "plugin.ts", "-o", out, "-O3", "--runtime", "incremental", "--use", "abort=",
			"--enable", "simd", "--enable", "bulk-memory", "--exportStart", "_initialize"}}
	}
	own := filepath.Join("node_modules", ".bin", "asc")
	if _, err := os.Stat(filepath.Join(dir, own)); err == nil {
		return []buildStep{compile("./" + own)}, nil
	}
	if _, err := exec.LookPath("asc"); err == nil {
		return []buildStep{compile("asc")}, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, errors.New("the compiler asc is not installed, nor npm to fetch it; get npm by: apt-get install npm (Debian), brew install node (macOS)")
	}
	fetch := buildStep{args: []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}} // versions and digests are in package-lock.json
	return []buildStep{fetch, compile("./" + own)}, nil
}
