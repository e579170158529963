package cartesia

import (
	"context"
	"errors"
	"fmt"

	"github.com/coder/websocket"

	"parley/internal/provider/wire"
)

const who = "cartesia speaker"

// explain says what went wrong in words fit for a call's record. A connection of which
// nothing else is known was lost.
func (p *Provider) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		if closed, ok := errors.AsType[websocket.CloseError](err); ok {
			return fmt.Errorf("%s: the service ended the connection (%d)", who, int(closed.Code))
		}
		if _, refused := errors.AsType[*wire.RefusalError](err); !refused && !errors.Is(err, errMalformed) && !errors.Is(err, errEmpty) && !errors.Is(err, errUnreachable) {
			return fmt.Errorf("%s: the connection was lost", who)
		}
	}
	return wire.Explain(ctx, who, p.options.APIKey, err)
}

var (
	errMalformed   = errors.New("the service sent what is not an event")
	errEmpty       = errors.New("the service sent no sound")
	errUnreachable = errors.New("the service cannot be reached")
)
