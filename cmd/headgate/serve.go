package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/gateway/datafolder"
)

// newServeCommand is the gateway itself.
func newServeCommand() *cobra.Command {
	var src config.Sources
	var data string
	cmd := &cobra.Command{
		Use:   "serve [--config FILE] [--data DIR] [--set path=value ...]",
		Short: "Run the gateway",
		Long: "Run the gateway. Without any configuration it keeps its data in ./headgate-data, takes events on\n" +
			"127.0.0.1:8080 and answers the admin API on 127.0.0.1:9090. SIGTERM drains and stops; a second one stops at once.\n" +
			"Settings: flags win over HEADGATE_... in the environment, that over the file, that over the defaults.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			src.Environ = os.Environ()
			if data != "" {
				src.Set = append(src.Set, "data="+yamlText(data))
			}
			return serve(cmd.Context(), src)
		},
	}
	configFlag(cmd, &src.File)
	cmd.Flags().StringVar(&data, "data", "", "data folder (default headgate-data)")
	cmd.Flags().StringArrayVar(&src.Set, "set", nil, "a setting, as path=value in YAML (may be repeated)")
	return cmd
}

func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", os.Getenv("HEADGATE_CONFIG"), "configuration file, YAML")
}

// yamlText quotes s so that YAML reads it back as the same text.
func yamlText(s string) string { return fmt.Sprintf("%q", s) }

func serve(ctx context.Context, src config.Sources) error {
	if os.Getenv("GOGC") == "" {
		defer boundGarbage()()
	}
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // we say it ourselves, with what to do
	cfg, warnings, err := config.Load(src)
	if err != nil {
		return usageError(err)
	}
	log := newLogger(os.Stderr, cfg.Log)
	for _, w := range warnings {
		log.Warn(w)
	}
	g, err := gateway.New(cfg, gateway.Deps{Log: log, Build: build(), Compiler: compiler(), Out: os.Stdout})
	if err != nil {
		return usageError(err)
	}
	// The first signal drains; from then on the default action holds, so that a second one stops at once.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	defer onHangup(g.Reload)()
	err = g.Run(ctx)
	if _, ok := errors.AsType[*datafolder.LockedError](err); ok {
		return usageError(err)
	}
	return err
}

// onHangup calls do at each SIGHUP until what it returns is called, which does not wait for one that goes on: it may be
// reading from a file system that does not answer.
func onHangup(do func()) (end func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			do()
		}
	}()
	return func() { signal.Stop(hangups); close(hangups) }
}

func newLogger(out *os.File, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		panic("BUG: log level was validated: " + err.Error())
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" || cfg.Format == "" && isTerminal(out) {
		return slog.New(slog.NewTextHandler(out, opts))
	}
	return slog.New(slog.NewJSONHandler(out, opts))
}
