-- One schema for both databases. Times are microseconds since 1970 and documents
-- are text, so that both databases mean exactly the same by them.

-- +goose Up
CREATE TABLE users (
  id         {{.ID}},
  email      TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  plan       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE tokens (
  id         {{.ID}},
  user_id    BIGINT NOT NULL REFERENCES users (id),
  name       TEXT NOT NULL,
  hash       {{.Bytes}} NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);
CREATE INDEX tokens_user ON tokens (user_id);

CREATE TABLE languages (
  id    {{.ID}},
  name  TEXT NOT NULL UNIQUE,
  iso_2 TEXT NOT NULL
);

CREATE TABLE voices (
  id          {{.ID}},
  name        TEXT NOT NULL,
  mode        TEXT NOT NULL,
  provider    TEXT NOT NULL,
  key         TEXT NOT NULL,
  language_id BIGINT REFERENCES languages (id),
  user_id     BIGINT REFERENCES users (id)
);
CREATE UNIQUE INDEX voices_public ON voices (provider, mode, key) WHERE user_id IS NULL;
CREATE UNIQUE INDEX voices_private ON voices (user_id, provider, mode, key) WHERE user_id IS NOT NULL;

CREATE TABLE models (
  id       {{.ID}},
  name     TEXT NOT NULL UNIQUE,
  provider TEXT NOT NULL,
  key      TEXT NOT NULL
);

CREATE TABLE tools (
  id          {{.ID}},
  user_id     BIGINT NOT NULL REFERENCES users (id),
  name        TEXT NOT NULL,
  description TEXT NOT NULL,
  endpoint    TEXT NOT NULL,
  method      TEXT NOT NULL,
  timeout     INTEGER NOT NULL,
  headers     {{.Bytes}} NOT NULL, -- sealed
  schema      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);
CREATE INDEX tools_user ON tools (user_id, id);

CREATE TABLE sip_trunks (
  id                  {{.ID}},
  user_id             BIGINT NOT NULL REFERENCES users (id),
  sip_address         TEXT NOT NULL,
  transport           TEXT NOT NULL,
  sip_username        TEXT NOT NULL,
  sip_password        {{.Bytes}} NOT NULL, -- sealed
  register            BOOLEAN NOT NULL,
  outbound_proxy      TEXT,
  allowed_inbound_ips TEXT NOT NULL,
  calling_format      TEXT NOT NULL,
  max_channels        INTEGER NOT NULL,
  calls_per_second    INTEGER NOT NULL,
  created_at          BIGINT NOT NULL,
  updated_at          BIGINT NOT NULL
);
CREATE INDEX sip_trunks_user ON sip_trunks (user_id, id);

CREATE TABLE phone_numbers (
  id           {{.ID}},
  user_id      BIGINT NOT NULL REFERENCES users (id),
  phone_number TEXT NOT NULL,
  country_code TEXT NOT NULL,
  type_label   TEXT NOT NULL,
  sip_trunk_id BIGINT REFERENCES sip_trunks (id),
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  UNIQUE (user_id, phone_number)
);
CREATE INDEX phone_numbers_trunk ON phone_numbers (sip_trunk_id);

CREATE TABLE assistants (
  id              {{.ID}},
  user_id         BIGINT NOT NULL REFERENCES users (id),
  uuid            TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  type            TEXT NOT NULL,
  status          TEXT NOT NULL,
  mode            TEXT NOT NULL,
  phone_number_id BIGINT REFERENCES phone_numbers (id),
  voice_id        BIGINT NOT NULL REFERENCES voices (id),
  language_id     BIGINT NOT NULL REFERENCES languages (id),
  llm_model_id    BIGINT NOT NULL REFERENCES models (id),
  settings        TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL,
  deleted_at      BIGINT
);
CREATE INDEX assistants_user ON assistants (user_id, id) WHERE deleted_at IS NULL;
CREATE INDEX assistants_user_type ON assistants (user_id, type, status, id) WHERE deleted_at IS NULL;
CREATE INDEX assistants_number ON assistants (phone_number_id);
-- A number rings at one inbound assistant, however many requests race for it.
CREATE UNIQUE INDEX assistants_inbound_number ON assistants (phone_number_id)
  WHERE type = 'inbound' AND deleted_at IS NULL;

CREATE TABLE assistant_tools (
  assistant_id BIGINT NOT NULL REFERENCES assistants (id),
  tool_id      BIGINT NOT NULL REFERENCES tools (id),
  position     INTEGER NOT NULL,
  PRIMARY KEY (assistant_id, tool_id)
);
CREATE INDEX assistant_tools_tool ON assistant_tools (tool_id);

-- How many assistants a user has, by what lists filter on: counting rows would
-- make every page as slow as the list is long. Kept by triggers, in the
-- transaction that changes an assistant.
CREATE TABLE assistant_counts (
  user_id BIGINT NOT NULL,
  type    TEXT NOT NULL,
  status  TEXT NOT NULL,
  n       BIGINT NOT NULL,
  PRIMARY KEY (user_id, type, status)
);

-- +goose StatementBegin
{{- if .Postgres}}
CREATE FUNCTION assistants_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.deleted_at IS NULL THEN
    UPDATE assistant_counts SET n = n - 1
      WHERE user_id = OLD.user_id AND type = OLD.type AND status = OLD.status;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.deleted_at IS NULL THEN
    INSERT INTO assistant_counts (user_id, type, status, n) VALUES (NEW.user_id, NEW.type, NEW.status, 1)
      ON CONFLICT (user_id, type, status) DO UPDATE SET n = assistant_counts.n + 1;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER assistants_added AFTER INSERT OR DELETE ON assistants
  FOR EACH ROW EXECUTE FUNCTION assistants_counted();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER assistants_moved AFTER UPDATE ON assistants FOR EACH ROW
  WHEN ((OLD.type, OLD.status, OLD.deleted_at IS NULL) IS DISTINCT FROM (NEW.type, NEW.status, NEW.deleted_at IS NULL))
  EXECUTE FUNCTION assistants_counted();
{{- else}}
CREATE TRIGGER assistants_added AFTER INSERT ON assistants WHEN NEW.deleted_at IS NULL BEGIN
  INSERT INTO assistant_counts (user_id, type, status, n) VALUES (NEW.user_id, NEW.type, NEW.status, 1)
    ON CONFLICT (user_id, type, status) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER assistants_removed AFTER DELETE ON assistants WHEN OLD.deleted_at IS NULL BEGIN
  UPDATE assistant_counts SET n = n - 1
    WHERE user_id = OLD.user_id AND type = OLD.type AND status = OLD.status;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER assistants_moved AFTER UPDATE ON assistants
WHEN (OLD.type, OLD.status, OLD.deleted_at IS NULL) IS NOT (NEW.type, NEW.status, NEW.deleted_at IS NULL) BEGIN
  UPDATE assistant_counts SET n = n - (OLD.deleted_at IS NULL)
    WHERE user_id = OLD.user_id AND type = OLD.type AND status = OLD.status;
  INSERT INTO assistant_counts (user_id, type, status, n) VALUES (NEW.user_id, NEW.type, NEW.status, NEW.deleted_at IS NULL)
    ON CONFLICT (user_id, type, status) DO UPDATE SET n = n + excluded.n;
END;
{{- end}}
-- +goose StatementEnd
