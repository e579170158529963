package main

import (
	"context"
	"fmt"

	"parley"
	"parley/internal/store"
)

type eraseCmd struct {
	Number string `arg:"" help:"The number in E.164 form, such as +12025550100."`
	User   string `required:"" help:"The user's e-mail address."`
	Vacuum bool   `help:"Rewrite the database afterwards, so that its file holds no trace either; writing waits meanwhile."`
}

// Run forgets a number. If it was on the do-not-call list it is still not called.
func (e eraseCmd) Run(ctx context.Context, config *Config, c console) error {
	if message := parley.E164(e.Number); message != "" {
		return fmt.Errorf("%q is no phone number in E.164 form, such as +12025550100", e.Number)
	}
	return config.withDB(ctx, func(db *store.DB) error {
		user, err := findUser(ctx, db, e.User)
		if err != nil {
			return err
		}
		calls, err := db.Tenant(user.ID).EraseNumber(ctx, e.Number, config.recordings())
		if err != nil {
			return err
		}
		c.printf("Erased the number with %d calls. Copies in backups and in logs of others stay.\n", calls)
		if !e.Vacuum {
			return nil
		}
		return db.System().Vacuum(ctx)
	})
}
