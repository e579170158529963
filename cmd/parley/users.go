package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"parley"
	"parley/internal/store"
)

type userCmd struct {
	Create userCreateCmd `cmd:"" help:"Create a user."`
	List   userListCmd   `cmd:"" help:"List the users."`
	Plan   userPlanCmd   `cmd:"" help:"Give a user another plan."`
}

type userCreateCmd struct {
	Email string `required:"" help:"E-mail address."`
	Name  string `help:"Name; otherwise the part of the address before the @."`
	Plan  string `help:"Plan: default, pro or unlimited."`
}

func (u userCreateCmd) Run(ctx context.Context, config *Config, c console) error {
	user, err := parley.NewUser(u.Email, u.Name, u.Plan)
	if err != nil {
		return err
	}
	return config.withDB(ctx, func(db *store.DB) error {
		if err := db.System().CreateUser(ctx, user); err != nil {
			return err
		}
		c.printf("Created user %d, %s, on the plan %s.\n", user.ID, user.Email, user.Plan)
		c.printf("Next: parley token create --user %s --name NAME\n", user.Email)
		return nil
	})
}

type userListCmd struct{}

func (userListCmd) Run(ctx context.Context, config *Config, c console) error {
	return config.withDB(ctx, func(db *store.DB) error {
		users, err := db.System().Users(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "EMAIL", "NAME", "PLAN", "CREATED"}}
		for _, u := range users {
			rows = append(rows, []string{fmt.Sprint(u.ID), u.Email, u.Name, u.Plan, u.CreatedAt.Format(time.DateTime)})
		}
		return c.table(rows)
	})
}

type userPlanCmd struct {
	Email string `required:"" help:"E-mail address."`
	Plan  string `required:"" help:"Plan: default, pro or unlimited."`
}

func (u userPlanCmd) Run(ctx context.Context, config *Config, c console) error {
	if _, err := parley.NewUser(u.Email, "", u.Plan); err != nil {
		return err
	}
	return config.withDB(ctx, func(db *store.DB) error {
		user, err := findUser(ctx, db, u.Email)
		if err != nil {
			return err
		}
		if err := db.System().SetPlan(ctx, user.ID, u.Plan); err != nil {
			return err
		}
		c.printf("%s is on the plan %s now.\n", user.Email, u.Plan)
		return nil
	})
}

// findUser is the user with an address, or an error that says how to find one.
func findUser(ctx context.Context, db *store.DB, email string) (*parley.User, error) {
	user, err := db.System().UserByEmail(ctx, strings.ToLower(email))
	if parley.ErrorCode(err) == parley.NotFound {
		return nil, fmt.Errorf("there is no user %s; parley user list shows them", email)
	}
	return user, err
}

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Create a token and show it once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens, without their secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token at once."`
}

type tokenCreateCmd struct {
	User string `required:"" help:"The user's e-mail address."`
	Name string `required:"" help:"What the token is for."`
}

func (t tokenCreateCmd) Run(ctx context.Context, config *Config, c console) error {
	token, err := parley.CreateToken(parley.Input{"name": t.Name})
	if err != nil {
		return err
	}
	return config.withDB(ctx, func(db *store.DB) error {
		user, err := findUser(ctx, db, t.User)
		if err != nil {
			return err
		}
		text, err := db.Tenant(user.ID).CreateToken(ctx, token)
		if err != nil {
			return err
		}
		// The token alone on standard output, so that scripts can take it.
		fmt.Fprintln(c.err, "The token is shown only now; keep it.")
		c.printf("%s\n", text)
		return nil
	})
}

type tokenListCmd struct{}

func (tokenListCmd) Run(ctx context.Context, config *Config, c console) error {
	return config.withDB(ctx, func(db *store.DB) error {
		users, err := db.System().Users(ctx)
		if err != nil {
			return err
		}
		emails := map[parley.ID]string{}
		for _, u := range users {
			emails[u.ID] = u.Email
		}
		tokens, err := db.System().Tokens(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "USER", "NAME", "CREATED", "REVOKED"}}
		for _, t := range tokens {
			revoked := "-"
			if t.RevokedAt != nil {
				revoked = t.RevokedAt.Format(time.DateTime)
			}
			rows = append(rows, []string{fmt.Sprint(t.ID), emails[t.UserID], t.Name, t.CreatedAt.Format(time.DateTime), revoked})
		}
		return c.table(rows)
	})
}

type tokenRevokeCmd struct {
	ID int64 `arg:"" help:"The token's number: what stands before the | in it."`
}

func (t tokenRevokeCmd) Run(ctx context.Context, config *Config, c console) error {
	return config.withDB(ctx, func(db *store.DB) error {
		if err := db.System().RevokeToken(ctx, t.ID); err != nil {
			if parley.ErrorCode(err) == parley.NotFound {
				return fmt.Errorf("there is no live token %d; parley token list shows them", t.ID)
			}
			return err
		}
		c.printf("Revoked token %d.\n", t.ID)
		return nil
	})
}

// table writes rows in columns.
func (c console) table(rows [][]string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
