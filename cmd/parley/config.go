package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"parley/internal/egress"
	"parley/internal/provider"
	"parley/internal/store"
)

// Config is everything an operator can set, by flag or by environment variable.
type Config struct {
	HTTP           string   `name:"http" env:"PARLEY_HTTP" default:"127.0.0.1:8080" help:"Address to serve HTTP on."`
	Data           string   `name:"data" env:"PARLEY_DATA" default:"./data" help:"Folder for the database, keys and recordings."`
	DB             string   `name:"db" env:"PARLEY_DB" help:"PostgreSQL address (postgres://...); empty for SQLite in the data folder."`
	Token          string   `name:"token" env:"PARLEY_TOKEN" help:"Token of the first user, on an empty database; empty for a random one."`
	PublicURL      string   `name:"public-url" env:"PARLEY_PUBLIC_URL" help:"Address users reach this server by, such as https://parley.example.com."`
	SecretKey      string   `name:"secret-key" env:"PARLEY_SECRET_KEY" help:"Key that encrypts secrets: base64 of 32 bytes; several, the newest first, separated by commas. Empty for a key file in the data folder."`
	Log            string   `name:"log" env:"PARLEY_LOG" default:"info" enum:"debug,info,warn,error" help:"Least level to log: ${enum}."`
	LogPersonal    bool     `name:"log-personal" env:"PARLEY_LOG_PERSONAL" help:"Log phone numbers and words of people too, for debugging."`
	RatePerToken   int      `name:"rate-per-token" env:"PARLEY_RATE_PER_TOKEN" default:"100" help:"Requests a second that a token may make; 0 for no limit."`
	RatePerAddress int      `name:"rate-per-address" env:"PARLEY_RATE_PER_ADDRESS" default:"300" help:"Requests a second that an address may make; 0 for no limit."`
	TrustedProxies []string `name:"trusted-proxies" env:"PARLEY_TRUSTED_PROXIES" help:"Addresses or networks of the proxies whose X-Forwarded headers are believed."`
	StopTimeoutSec int      `name:"stop-timeout-seconds" env:"PARLEY_STOP_TIMEOUT_SECONDS" default:"20" help:"How long requests and jobs may take to finish when the server stops."`
	RetentionDays  int      `name:"retention-days" env:"PARLEY_RETENTION_DAYS" default:"0" help:"How long calls are kept, with their transcripts and recordings; 0 for always."`

	AllowPrivate []string `name:"allow-private" env:"PARLEY_ALLOW_PRIVATE" help:"Networks or hosts that tools and webhooks may reach besides the public web, such as 10.1.0.0/16 or crm.internal; make run allows 127.0.0.0/8."`

	Telephony

	Providers provider.Settings `embed:""`

	proxies []netip.Prefix
	allowed egress.Allowed
}

// validate refuses what cannot work, and says what to set instead.
func (c *Config) validate() error {
	if _, _, err := net.SplitHostPort(c.HTTP); err != nil {
		return fmt.Errorf("PARLEY_HTTP %q is not host:port; set it to 127.0.0.1:8080, say", c.HTTP)
	}
	if c.DB != "" && !strings.HasPrefix(c.DB, "postgres://") && !strings.HasPrefix(c.DB, "postgresql://") {
		return errors.New("PARLEY_DB must be a PostgreSQL address, postgres://user:password@host:5432/name, or empty for SQLite")
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("PARLEY_PUBLIC_URL %q is not an http or https address", c.PublicURL)
		}
	}
	if c.RatePerToken < 0 || c.RatePerAddress < 0 {
		return errors.New("PARLEY_RATE_PER_TOKEN and PARLEY_RATE_PER_ADDRESS must be 0 or more")
	}
	if c.StopTimeoutSec < 1 {
		return errors.New("PARLEY_STOP_TIMEOUT_SECONDS must be 1 or more")
	}
	if c.RetentionDays < 0 {
		return errors.New("PARLEY_RETENTION_DAYS must be 1 or more, or 0 to keep calls for ever")
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("PARLEY_TOKEN must be printable ASCII without spaces")
	}
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, addressErr := netip.ParseAddr(text)
			if addressErr != nil {
				return fmt.Errorf("PARLEY_TRUSTED_PROXIES: %q is neither an address nor a network such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		c.proxies = append(c.proxies, network)
	}
	allowed, err := egress.ParseAllowed(c.AllowPrivate)
	if err != nil {
		return fmt.Errorf("PARLEY_ALLOW_PRIVATE: %w", err)
	}
	c.allowed = allowed
	return c.Telephony.validate()
}

// keyFile is where the key is kept when it is not set.
func (c *Config) keyFile() string { return filepath.Join(c.Data, "secret.key") }

func (c *Config) keys() (*store.Keys, error) {
	if c.SecretKey != "" {
		return store.ParseKeys(c.SecretKey)
	}
	return store.KeyFile(c.keyFile())
}

// openDB opens the configured database as it is.
func (c *Config) openDB(ctx context.Context) (*store.DB, error) {
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Options{URL: c.DB, Dir: c.Data, Keys: keys})
}

// withDB runs a command on a database that is up to date.
func (c *Config) withDB(ctx context.Context, fn func(*store.DB) error) error {
	db, err := c.openDB(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx, nil); err != nil {
		return err
	}
	return fn(db)
}

// logger writes structured lines. What names a person stands under keys that begin
// with "pii." and is dropped unless the operator asked for it.
func (c *Config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Log)) // kong has checked it
	options := &slog.HandlerOptions{Level: level}
	if !c.LogPersonal {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if strings.HasPrefix(a.Key, "pii.") {
				return slog.Attr{}
			}
			return a
		}
	}
	return slog.New(slog.NewTextHandler(w, options))
}
