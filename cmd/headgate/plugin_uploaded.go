package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/admin"
)

// uploaded is a trial on a gateway, of a version that it has.
type uploaded struct {
	*trial
	at *address
	f  *tryFlags
}

// run sends the events of a file, so many at a time as are taken, and prints what became of them.
func (u *uploaded) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 || u.f.events == "" || u.f.accept {
		return usagef("with --uploaded give --events FILE, and no module and no --accept")
	}
	query := url.Values{}
	if u.f.digest != "" {
		query.Set("digest", u.f.digest)
	}
	config, err := readConfig(u.f.config)
	if err != nil {
		return err
	}
	if config != nil {
		query.Set("config", string(config))
	}
	if err := u.expectations(u.f.expect, false); err != nil {
		return err
	}
	file, _, err := openInput(u.f.events, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer file.Close()
	return u.send(cmd, cut(file, u.f.mediaType, trialBatch), pluginPath(u.f.uploaded)+"/test?"+query.Encode())
}

func (u *uploaded) send(cmd *cobra.Command, source batches, path string) error {
	to, err := u.at.dial()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	var spent float64
	for {
		b, err := source.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return usageError(err)
		}
		var r admin.TrialResult
		c := call{method: http.MethodPost, path: path, mediaType: u.f.mediaType, body: b.body}
		if _, err := to.do(ctx, c, &r); err != nil {
			return err
		}
		spent += r.Cost * float64(len(r.Events))
		for i, doc := range r.Events {
			line := trialEvent{Event: b.first + i}
			if err := json.Unmarshal(doc, &line); err != nil {
				return to.foreign(err)
			}
			u.count(line)
			if err := u.printEvent(line); err != nil {
				return err
			}
			if err := u.compare(line); err != nil {
				return err
			}
		}
	}
	u.total.Cost = spent / float64(max(u.total.Events, 1))
	return u.end()
}

// end prints the summary, and is an error when the plugin failed or something is not as expected.
func (t *trial) end() error {
	if err := t.summary(); err != nil {
		return err
	}
	if t.total.Failed > 0 {
		return fmt.Errorf("the plugin failed on %d of %d events", t.total.Failed, t.total.Events)
	}
	return t.finish()
}
