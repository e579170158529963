-- Webhooks: the secrets they are signed with, and every delivery.

-- +goose Up
CREATE TABLE webhook_secrets (
  id         {{.ID}},
  user_id    BIGINT NOT NULL REFERENCES users (id),
  secret     {{.Bytes}} NOT NULL, -- sealed
  created_at BIGINT NOT NULL,
  expires_at BIGINT -- of one that was replaced
);
CREATE INDEX webhook_secrets_user ON webhook_secrets (user_id, id);
-- One is the newest, however many requests race to make it.
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (user_id) WHERE expires_at IS NULL;

CREATE TABLE webhook_deliveries (
  id              {{.ID}},
  user_id         BIGINT NOT NULL REFERENCES users (id),
  call_id         BIGINT NOT NULL REFERENCES calls (id),
  assistant_id    BIGINT NOT NULL REFERENCES assistants (id),
  kind            TEXT NOT NULL, -- which of the assistant's two addresses
  message_id      TEXT NOT NULL, -- the same on every try
  event           TEXT NOT NULL,
  url             TEXT NOT NULL,
  body            TEXT NOT NULL,
  status          TEXT NOT NULL,
  attempts        INTEGER NOT NULL DEFAULT 0,
  response_status INTEGER,
  response_body   TEXT,
  error           TEXT,
  next_at         BIGINT,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL,
  delivered_at    BIGINT
);
CREATE INDEX webhook_deliveries_user ON webhook_deliveries (user_id, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (user_id, status, id);
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (call_id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (assistant_id, kind, status);
