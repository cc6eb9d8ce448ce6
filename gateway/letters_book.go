package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/ledger"
)

// letterBook is what the control store knows of a stream's letters.
type letterBook struct {
	*ledger.Book
	docs     *control.Documents
	stream   string
	revision uint64 // 0: not stored yet
}

func (g *Gateway) openBook(ctx context.Context, stream string) (*letterBook, error) {
	b := &letterBook{docs: g.store.Letters, stream: stream}
	doc, err := b.docs.Read(ctx, stream)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		return nil, fmt.Errorf("read which letters are settled: %w", err)
	}
	b.revision = doc.Revision
	if b.Book, err = ledger.Parse(doc.Value); err != nil {
		return nil, fmt.Errorf("which letters of %s are settled can't be read: %w", stream, err)
	}
	return b, nil
}

// save stores the book, whether or not who asked for it has gone. What fails leaves it unknown whether it is.
func (b *letterBook) save(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), steerTimeout)
	defer cancel()
	text, err := json.Marshal(b.Book)
	if err != nil {
		return err
	}
	b.revision, err = b.docs.Write(ctx, b.stream, text, b.revision)
	switch {
	case errors.Is(err, control.ErrRevision):
		return event.Problemf(event.ReplayRunning, "somebody else replays or purges letters of stream %s", b.stream)
	case errors.Is(err, control.ErrTooLarge):
		return event.Problemf(event.BadParameter, "too many single letters of stream %s are settled between open ones: replay or purge the oldest ones first", b.stream)
	case err != nil:
		return fmt.Errorf("note which letters are settled: %w", err)
	}
	return nil
}

func (b *letterBook) settle(l *admin.Letter) { b.Settle(l.Gateway, l.Number, l.Number) }
