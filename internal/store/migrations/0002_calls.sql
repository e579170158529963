-- Calls, and what holds them while they are live.

-- +goose Up

-- A node is a running process. One that has not beaten for a while is dead, and its
-- calls and jobs are taken from it.
CREATE TABLE nodes (
  id         TEXT PRIMARY KEY,
  started_at BIGINT NOT NULL,
  beat_at    BIGINT NOT NULL
);

CREATE TABLE calls (
  id                     {{.ID}},
  user_id                BIGINT NOT NULL REFERENCES users (id),
  assistant_id           BIGINT NOT NULL REFERENCES assistants (id),
  assistant_name         TEXT NOT NULL,
  campaign_id            BIGINT,
  campaign_name          TEXT,
  lead_id                BIGINT,
  lead_contact           INTEGER NOT NULL DEFAULT 0,
  lead_attempt           INTEGER NOT NULL DEFAULT 0,
  type                   TEXT NOT NULL,
  status                 TEXT NOT NULL,
  assistant_phone_number TEXT NOT NULL,
  client_phone_number    TEXT NOT NULL,
  carrier                TEXT NOT NULL,
  sip_trunk_id           BIGINT,
  variables              TEXT NOT NULL,
  input_variables        TEXT NOT NULL,
  evaluation             TEXT NOT NULL DEFAULT '{}',
  webhook_response       TEXT,
  transcript             TEXT NOT NULL DEFAULT '',
  turns                  TEXT NOT NULL DEFAULT '[]',
  answered_by            TEXT NOT NULL DEFAULT 'unknown',
  ended_by               TEXT,
  end_reason             TEXT,
  failure                TEXT,
  carrier_cost           BIGINT NOT NULL DEFAULT 0, -- millionths
  total_cost             BIGINT NOT NULL DEFAULT 0,
  costs                  TEXT NOT NULL DEFAULT '{}',
  recording              TEXT NOT NULL DEFAULT '',
  quality                TEXT,
  opted_out              BOOLEAN NOT NULL DEFAULT FALSE,
  duration               INTEGER NOT NULL DEFAULT 0,
  created_at             BIGINT NOT NULL,
  updated_at             BIGINT NOT NULL,
  dialed_at              BIGINT, -- set before the INVITE leaves, so that it leaves once
  answered_at            BIGINT,
  ended_at               BIGINT,
  hangup_at              BIGINT, -- when somebody asked for the end
  node                   TEXT    -- who holds the call; nobody when it is null
);
CREATE INDEX calls_user ON calls (user_id, created_at, id);
CREATE INDEX calls_user_status ON calls (user_id, status, created_at, id);
CREATE INDEX calls_user_type ON calls (user_id, type, created_at, id);
CREATE INDEX calls_user_number ON calls (user_id, client_phone_number, created_at, id);
CREATE INDEX calls_user_assistant ON calls (user_id, assistant_id, created_at, id);
CREATE INDEX calls_user_campaign ON calls (user_id, campaign_id, created_at, id) WHERE campaign_id IS NOT NULL;
CREATE INDEX calls_lead ON calls (lead_id) WHERE lead_id IS NOT NULL;
-- Few calls are live at once, however many there have been.
CREATE INDEX calls_live ON calls (user_id, sip_trunk_id) WHERE status IN ('initiated', 'ringing', 'in-progress');
CREATE INDEX calls_unfinished ON calls (id) WHERE status IN ('ended', 'ended_by_customer', 'ended_by_assistant');
CREATE INDEX calls_held ON calls (node) WHERE node IS NOT NULL;
CREATE INDEX calls_campaign_live ON calls (campaign_id) WHERE status IN ('initiated', 'ringing', 'in-progress') AND campaign_id IS NOT NULL;
-- An attempt of a lead is dialled once, whoever claims it.
CREATE UNIQUE INDEX calls_attempt ON calls (lead_id, lead_attempt, lead_contact) WHERE lead_id IS NOT NULL AND dialed_at IS NOT NULL;

-- The steps of a call, and its turns for whoever listens while it goes on.
CREATE TABLE call_events (
  id      {{.ID}},
  call_id BIGINT NOT NULL REFERENCES calls (id),
  at      BIGINT NOT NULL,
  event   TEXT NOT NULL,
  detail  TEXT NOT NULL
);
CREATE INDEX call_events_call ON call_events (call_id, id);

-- What an account has talked and spent, by the day (UTC) of the call's end.
CREATE TABLE call_usage (
  user_id BIGINT NOT NULL REFERENCES users (id),
  day     BIGINT NOT NULL, -- days since 1970
  seconds BIGINT NOT NULL,
  cost    BIGINT NOT NULL,
  PRIMARY KEY (user_id, day)
);

-- How many calls a user has, by what lists are filtered by: counting rows would make every
-- page as slow as the list is long. A call counts with its status once that is final, so
-- that it moves once only and no two transactions meet here in opposite orders.
CREATE TABLE call_counts (
  user_id      BIGINT NOT NULL,
  day          BIGINT NOT NULL, -- of creation, since 1970
  type         TEXT NOT NULL,
  assistant_id BIGINT NOT NULL,
  campaign_id  BIGINT NOT NULL, -- 0 for none
  status       TEXT NOT NULL,   -- '' while it is not final
  n            BIGINT NOT NULL,
  PRIMARY KEY (user_id, day, type, assistant_id, campaign_id, status)
);

-- The first answer to a request with an Idempotency-Key.
CREATE TABLE idempotency_keys (
  user_id    BIGINT NOT NULL REFERENCES users (id),
  key        TEXT NOT NULL,
  request    {{.Bytes}} NOT NULL, -- hash of its body
  answer     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- +goose StatementBegin
{{- if .Postgres}}
CREATE FUNCTION calls_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    UPDATE call_counts SET n = n - 1 WHERE user_id = OLD.user_id AND day = OLD.created_at / 86400000000 AND type = OLD.type
      AND assistant_id = OLD.assistant_id AND campaign_id = COALESCE(OLD.campaign_id, 0) AND status = CASE WHEN OLD.status IN ('completed', 'busy', 'no-answer', 'failed') THEN OLD.status ELSE '' END;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO call_counts (user_id, day, type, assistant_id, campaign_id, status, n)
      VALUES (NEW.user_id, NEW.created_at / 86400000000, NEW.type, NEW.assistant_id, COALESCE(NEW.campaign_id, 0), CASE WHEN NEW.status IN ('completed', 'busy', 'no-answer', 'failed') THEN NEW.status ELSE '' END, 1)
      ON CONFLICT (user_id, day, type, assistant_id, campaign_id, status) DO UPDATE SET n = call_counts.n + 1;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_counted AFTER INSERT OR DELETE ON calls FOR EACH ROW EXECUTE FUNCTION calls_counted();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_concluded AFTER UPDATE OF status ON calls FOR EACH ROW
  WHEN (OLD.status <> NEW.status AND NEW.status IN ('completed', 'busy', 'no-answer', 'failed')) EXECUTE FUNCTION calls_counted();
{{- else}}
CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN
  INSERT INTO call_counts (user_id, day, type, assistant_id, campaign_id, status, n)
      VALUES (NEW.user_id, NEW.created_at / 86400000000, NEW.type, NEW.assistant_id, COALESCE(NEW.campaign_id, 0), CASE WHEN NEW.status IN ('completed', 'busy', 'no-answer', 'failed') THEN NEW.status ELSE '' END, 1)
      ON CONFLICT (user_id, day, type, assistant_id, campaign_id, status) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_concluded AFTER UPDATE OF status ON calls WHEN OLD.status <> NEW.status AND NEW.status IN ('completed', 'busy', 'no-answer', 'failed') BEGIN
  UPDATE call_counts SET n = n - 1 WHERE user_id = OLD.user_id AND day = OLD.created_at / 86400000000 AND type = OLD.type
      AND assistant_id = OLD.assistant_id AND campaign_id = COALESCE(OLD.campaign_id, 0) AND status = CASE WHEN OLD.status IN ('completed', 'busy', 'no-answer', 'failed') THEN OLD.status ELSE '' END;
  INSERT INTO call_counts (user_id, day, type, assistant_id, campaign_id, status, n)
      VALUES (NEW.user_id, NEW.created_at / 86400000000, NEW.type, NEW.assistant_id, COALESCE(NEW.campaign_id, 0), CASE WHEN NEW.status IN ('completed', 'busy', 'no-answer', 'failed') THEN NEW.status ELSE '' END, 1)
      ON CONFLICT (user_id, day, type, assistant_id, campaign_id, status) DO UPDATE SET n = n + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN
  UPDATE call_counts SET n = n - 1 WHERE user_id = OLD.user_id AND day = OLD.created_at / 86400000000 AND type = OLD.type
      AND assistant_id = OLD.assistant_id AND campaign_id = COALESCE(OLD.campaign_id, 0) AND status = CASE WHEN OLD.status IN ('completed', 'busy', 'no-answer', 'failed') THEN OLD.status ELSE '' END;
END;
{{- end}}
-- +goose StatementEnd
