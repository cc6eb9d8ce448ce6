package gateway

import (
	"context"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/internal/ledger"
)

// PurgeLetters settles letters without handing them over, and removes what is settled. See admin.Letters.
func (g *Gateway) PurgeLetters(ctx context.Context, stream string, o admin.LetterOrder) (sums admin.PurgeSums, err error) {
	if err := g.hasLetters(stream); err != nil {
		return sums, err
	}
	r, ctx, err := g.replays.begin(ctx, stream)
	if err != nil {
		return sums, err
	}
	defer r.end()
	book, err := g.openBook(ctx, stream)
	if err != nil {
		return sums, err
	}
	if err := g.reconcile(ctx, r, book); err != nil {
		return sums, err
	}
	var picked ledger.Handed
	err = g.openLetters(ctx, stream, book, &o, func(_ uint64, l *admin.Letter) error {
		picked.Add(l.Gateway, l.Number)
		sums.Selected++
		return nil
	})
	if sums.Left = sums.Selected; err != nil || o.DryRun || sums.Selected == 0 {
		return sums, err
	}
	book.SettleAll(&picked)
	if err := book.save(ctx); err != nil {
		return sums, err
	}
	sums.Purged, sums.Left = sums.Selected, 0
	g.log.Info("letters purged", "stream", stream, "letters", sums.Purged)
	g.sweepLetters(ctx, stream, book)
	return sums, nil
}
