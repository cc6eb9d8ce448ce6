// Package faults has no code but tests, which do to the real binary what power, disks, kernels and backends do, and count
// what is left of everything that was acknowledged. docs/faults.md says how to run them.
package faults
