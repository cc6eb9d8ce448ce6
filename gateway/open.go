package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/gateway/datafolder"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/window"
)

// open brings everything up to the point where requests can be taken.
func (g *Gateway) open(ctx context.Context) (err error) {
	g.delivery, g.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	if g.folder, err = datafolder.Open(g.cfg.Data); err != nil {
		return err
	}
	g.noteStart()
	if err := g.openSpace(); err != nil {
		return err
	}
	if g.stores, err = openStores(ctx, g.folder, g.cfg, g.log); err != nil {
		return g.folder.OrFull(err)
	}
	g.store = g.stores.control.store
	if err := g.newParts(ctx); err != nil {
		return err
	}
	if err := g.listen(); err != nil {
		return err
	}
	for _, b := range g.stores.buses { // what its configuration says now is in force before streams are opened
		if err := b.keeper.Look(ctx); err != nil && b.writer.IsConnected() {
			return fmt.Errorf("backend %s (%s): %w", b.name, b.where, err)
		}
	}
	g.stores.events.Tell(g.loseDamaged)
	err = g.openStreams(ctx)
	g.unclean = false
	return err
}

// ownersSecret is the name of the secret that keys who owns what is remembered. No stream and no dead letter can have it.
const ownersSecret = "gateway.owners"

func (g *Gateway) newParts(ctx context.Context) (err error) {
	if g.forwardMetrics, err = forward.NewMetrics(g.metrics); err != nil {
		return err
	}
	if g.host, err = g.newHost(); err != nil {
		return err
	}
	if err = g.openCertificate(); err != nil {
		return err
	}
	if err := g.exportDamages(); err != nil {
		return err
	}
	for _, digest := range g.host.Kept() {
		g.forget(context.Background(), digest)
	}
	keys := window.RecoverKeys(g.cfg.Idempotency.Keys, time.Duration(g.cfg.Idempotency.Window), time.Now())
	g.keys = keys
	g.keyLog = g.remember(keys, g.folder.WindowFolder("keys"))
	if g.owners, err = g.store.Secret(ctx, ownersSecret); err != nil {
		return fmt.Errorf("read secret of callers: %w", err)
	}
	h := g.cfg.HTTP
	quic, err := g.quic()
	if err != nil {
		return err
	}
	g.ingest, err = ingest.New(ingest.Config{
		Listen: h.Listen, TLSListen: h.TLS.Listen, TLS: g.secure(), QUIC: quic, Origins: h.CORS.Origins,
		ReadTimeout: time.Duration(h.ReadTimeout), IdleTimeout: time.Duration(h.IdleTimeout),
		RequestTimeout: time.Duration(h.RequestTimeout), MaxConnections: h.MaxConnections, MaxSockets: g.sockets(),
		MaxConnectionsPerAddress: h.MaxConnectionsPerAddress, MaxRequestsPerConnection: h.MaxRequestsPerConnection,
		MaxConnectionAge: time.Duration(h.MaxConnectionAge),
	}, g, ingest.Deps{Log: g.log, Metrics: g.metrics, Budget: g.bodies, Auth: g.senders(), Rates: newCallers(&g.cfg, g.rates), Keys: keys, Owners: g.owners})
	if err != nil {
		return err
	}
	if sessions := g.ingest.Sessions(); sessions != nil {
		g.sessionLog = g.remember(sessions, g.folder.WindowFolder("sessions"))
	}
	g.admin, err = admin.New(admin.Config{Listen: g.cfg.Admin.Listen, Hosts: g.cfg.Admin.Hosts, Build: g.deps.Build},
		admin.Deps{Health: g, Streams: g, Routing: g, Chains: g, Plugins: g, Logs: g, Trials: g, Events: g, Purger: g, Watcher: g, Letters: g, Metrics: g.metrics, Auth: g.stewards(), Log: g.log})
	return err
}

// openStreams opens the streams of the file and those that were made before, each with its plugins. A stream whose
// plugins do not load is open and refuses its requests, so that nothing passes unfiltered.
func (g *Gateway) openStreams(ctx context.Context) error {
	stored, err := g.store.Streams.List(ctx)
	if err != nil {
		return fmt.Errorf("read stream definitions: %w", err)
	}
	before := map[string]control.Document{}
	for _, doc := range stored {
		before[doc.Name] = doc
		if _, ok := g.cfg.Streams[doc.Name]; ok {
			continue
		}
		if _, dead := deadLetterOf(doc.Name); dead {
			g.reopenDeadLetter(ctx, doc.Name)
			continue
		}
		cfg, err := config.ParseStream(doc.Value)
		if err != nil {
			err = fmt.Errorf("stored definition: %w", err)
		} else {
			err = g.startStream(ctx, doc.Name, cfg, doc.Revision, managedByAPI)
		}
		if err != nil { // one bad stream does not keep the others from starting
			g.log.Error("a stream did not start and refuses its requests", "stream", doc.Name, "error", err)
			g.broken.Store(doc.Name, &brokenStream{err, doc.Revision})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.cfg.Streams)) {
		cfg := g.cfg.Streams[name]
		revision, err := g.store.Streams.Write(ctx, name, cfg.Document(), before[name].Revision)
		if err != nil {
			return fmt.Errorf("store definition of stream %s: %w", name, err)
		}
		if err := g.startStream(ctx, name, cfg, revision, managedByFile); err != nil {
			return errors.Join(err, g.takeBack(context.WithoutCancel(ctx), name, revision, before[name]))
		}
	}
	return nil
}

// takeBack has the definition again that there was before a start that ends, or none: without the stream in the file, the next one
// goes by it.
func (g *Gateway) takeBack(ctx context.Context, name string, revision uint64, before control.Document) error {
	if before.Revision == 0 {
		return g.store.Streams.Delete(ctx, name, revision)
	}
	if before.Revision == revision {
		return nil
	}
	_, err := g.store.Streams.Write(ctx, name, before.Value, revision)
	return err
}

// announce tells the world, in run.json and the log, that and where we are ready.
func (g *Gateway) announce() error {
	doc := datafolder.Running{
		PID: os.Getpid(), HTTP: text(g.addresses.http), HTTPS: text(g.addresses.https), Admin: text(g.addresses.admin), QUIC: text(g.addresses.quic), Version: g.deps.Build.Version,
	}
	if err := g.folder.Announce(doc); err != nil {
		return fmt.Errorf("write run.json: %w", err)
	}
	g.log.Info("ready", "http", doc.HTTP, "https", doc.HTTPS, "quic", doc.QUIC, "admin", doc.Admin, "data", g.folder.Path)
	if g.deps.Out != nil {
		url := "http://" + doc.HTTP
		if doc.HTTP == "" {
			url = "https://" + doc.HTTPS
		}
		with := ""
		if g.tokens != nil {
			with = " (with a token: --token file:PATH)"
		}
		fmt.Fprintf(g.deps.Out, "try%[3]s:\n  echo '{\"hello\":\"world\"}' | headgate send --stream %[4]s --url %[1]s -\n"+
			"  headgate tail --stream %[4]s --from start --admin-url http://%[2]s\n"+
			"  curl http://%[2]s/readyz?verbose\n", url, doc.Admin, with, g.cfg.FirstStream())
	}
	return nil
}

// listen opens the sockets.
func (g *Gateway) listen() error {
	var errHTTP, errAdmin error
	var at ingest.Addresses
	at, errHTTP = g.ingest.Listen()
	g.addresses.http, g.addresses.https, g.addresses.quic = at.Plain, at.TLS, at.QUIC
	g.addresses.admin, errAdmin = g.admin.Listen()
	ingestSetting := "http.listen"
	if g.cfg.HTTP.TLS.On() {
		ingestSetting = "http.listen or http.tls.listen"
	}
	if errHTTP != nil && strings.Contains(errHTTP.Error(), "QUIC") {
		ingestSetting = "quic.listen"
	}
	return errors.Join(notListening(ingestSetting, errHTTP), notListening("admin.listen", errAdmin))
}

// notListening says what to do about an address that cannot be listened on.
func notListening(setting string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; another process listens there: stop it, or set %s to another address (port 0 takes any free one)", err, setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; ports below 1024 need the right to: set %s to a higher one", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine has no such address: set %s to one it has, or to :PORT for all", err, setting)
	}
	return err
}

// addresses are what the listeners listen on.
type addresses struct{ http, https, quic, admin net.Addr }

// text is the address, empty when there is none.
func text(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
