package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/gateway"
)

// newSpoolCommand has the commands that look at the spools of a data folder, without a gateway.
func newSpoolCommand() *cobra.Command {
	return newGroup("spool", "Check, list and repair the frames that wait on the disk for their backend",
		newSpoolVerifyCommand(), newSpoolDumpCommand(), newSpoolRepairCommand())
}

func newSpoolVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Read every byte of the spools in a data folder; name what is damaged, and then exit 1",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return verifySpools(args[0], cmd.OutOrStdout()) },
	}
}

func verifySpools(dir string, out io.Writer) error {
	frames, events, damages := 0, 0, 0
	err := gateway.EachSpool(dir, func(stream string, files spool.Files) error {
		return spool.Examine(files, func(r spool.Record) error {
			frames++
			events += r.Frame.Events
			return nil
		}, func(d spool.Damage) error {
			damages++
			_, err := fmt.Fprintf(out, "%s/%v\n", stream, d)
			return err
		})
	})
	if err != nil {
		return err
	}
	if damages > 0 {
		return fmt.Errorf("%d damaged ranges beside %d sound frames with %d events; the next start sets them aside, or `headgate spool repair %s`",
			damages, frames, events, dir)
	}
	_, err = fmt.Fprintf(out, "ok: %d frames with %d events\n", frames, events)
	return err
}

func newSpoolDumpCommand() *cobra.Command {
	var output, stream string
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "List the frames in the spools of a data folder, or write out their bytes",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "text", "json", "frames"); err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			err := gateway.EachSpool(args[0], func(name string, files spool.Files) error {
				if stream != "" && stream != name {
					return nil
				}
				return spool.Examine(files, func(r spool.Record) error { return dumpRecord(out, output, name, &r) }, nil)
			})
			if err != nil {
				return err
			}
			return out.Flush()
		},
	}
	outputFlag(cmd, &output, "text", "json", "frames")
	cmd.Flags().StringVar(&stream, "stream", "", "stream; all without it")
	return cmd
}

// spoolLine is a frame in the output of spool dump -o json.
type spoolLine struct {
	Stream       string    `json:"stream"`
	Segment      string    `json:"segment"`
	Offset       int64     `json:"offset"`
	Partition    int32     `json:"partition"`
	First        uint64    `json:"first"`
	Last         uint64    `json:"last"`
	Events       int       `json:"events"`
	Bytes        int       `json:"bytes"`
	Codec        string    `json:"codec"`
	TableVersion uint64    `json:"table_version"`
	Written      time.Time `json:"written"`
	Confirmed    bool      `json:"confirmed"`
}

func dumpRecord(out io.Writer, output, stream string, r *spool.Record) error {
	f := &r.Frame
	switch output {
	case "frames":
		if r.Confirmed {
			return nil
		}
		_, err := out.Write(f.Payload)
		return err
	case "json":
		return json.NewEncoder(out).Encode(spoolLine{
			Stream: stream, Segment: r.Segment, Offset: r.Offset, Partition: f.Partition, First: f.First, Last: f.Last(), Events: f.Events,
			Bytes: len(f.Payload), Codec: f.Codec, TableVersion: f.TableVersion, Written: r.At.UTC(), Confirmed: r.Confirmed,
		})
	}
	state := "waits"
	if r.Confirmed {
		state = "confirmed"
	}
	_, err := fmt.Fprintf(out, "%s/%s %10d  partition %3d  numbers %d-%d  %d bytes %s  %s\n",
		stream, r.Segment, r.Offset, f.Partition, f.First, f.Last(), len(f.Payload), f.Codec, state)
	return err
}

func newSpoolRepairCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "repair DIR",
		Short: "Set aside what is damaged in the spools of a data folder that no gateway uses, and write the rest again",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			damages := 0
			err := gateway.RepairSpools(args[0], func(stream string, d spool.Damage) {
				damages++
				fmt.Fprintf(cmd.OutOrStdout(), "%s/%v\n", stream, d)
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d damaged ranges set aside in quarantine\n", damages)
			return nil
		},
	}
}
