-- Campaigns, their leads, and the numbers that must not be called.

-- +goose Up
-- Random keys that the installation made for itself.
CREATE TABLE secrets (
  id     {{.ID}},
  name   TEXT NOT NULL UNIQUE,
  secret {{.Bytes}} NOT NULL -- sealed
);

-- A number is found by its keyed hash: when it is erased the number goes and the
-- hash stays, so that it is still not called.
CREATE TABLE do_not_call (
  id           {{.ID}},
  user_id      BIGINT NOT NULL REFERENCES users (id),
  phone_number TEXT,
  hash         {{.Bytes}} NOT NULL,
  reason       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  UNIQUE (user_id, hash)
);
CREATE INDEX do_not_call_user ON do_not_call (user_id, id);

CREATE TABLE campaigns (
  id                       {{.ID}},
  user_id                  BIGINT NOT NULL REFERENCES users (id),
  name                     TEXT NOT NULL,
  status                   TEXT NOT NULL,
  assistant_id             BIGINT NOT NULL REFERENCES assistants (id),
  timezone                 TEXT NOT NULL,
  max_calls_in_parallel    INTEGER NOT NULL,
  mark_complete            BOOLEAN NOT NULL,
  hours_start              TEXT NOT NULL,
  hours_end                TEXT NOT NULL,
  allowed_days             TEXT NOT NULL,
  max_retries              INTEGER NOT NULL,
  retry_interval           INTEGER NOT NULL,
  retry_on_voicemail       BOOLEAN NOT NULL,
  retry_on_goal_incomplete BOOLEAN NOT NULL,
  goal_variable            TEXT,
  stop_reason              TEXT,
  created_at               BIGINT NOT NULL,
  updated_at               BIGINT NOT NULL,
  deleted_at               BIGINT -- set while its leads are being deleted
);
CREATE INDEX campaigns_user ON campaigns (user_id, id) WHERE deleted_at IS NULL;
CREATE INDEX campaigns_running ON campaigns (id) WHERE status = 'in-progress' AND deleted_at IS NULL;
CREATE INDEX campaigns_deleted ON campaigns (id) WHERE deleted_at IS NOT NULL;

-- A task that one node at a time does for all.
CREATE TABLE leases (
  task  TEXT PRIMARY KEY,
  node  TEXT NOT NULL,
  until BIGINT NOT NULL
);

CREATE TABLE campaign_numbers (
  campaign_id     BIGINT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  phone_number_id BIGINT NOT NULL REFERENCES phone_numbers (id),
  position        INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, phone_number_id)
);
CREATE INDEX campaign_numbers_number ON campaign_numbers (phone_number_id);

CREATE TABLE leads (
  id           {{.ID}},
  user_id      BIGINT NOT NULL, -- the campaign's
  campaign_id  BIGINT NOT NULL REFERENCES campaigns (id),
  phone_number TEXT NOT NULL,
  variables    TEXT NOT NULL,
  status       TEXT NOT NULL,
  timezone     TEXT,
  duplicate    BOOLEAN NOT NULL, -- its owner wanted it although the campaign may have the number already
  attempts     INTEGER NOT NULL,
  next_contact INTEGER NOT NULL,
  due_at       BIGINT NOT NULL, -- 0: as soon as may be
  wait_until   BIGINT NOT NULL, -- when the dialer looks at it next: what is due is found by this alone
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX leads_user ON leads (user_id, id);
CREATE INDEX leads_campaign ON leads (campaign_id, id);
CREATE INDEX leads_number ON leads (user_id, phone_number);
-- A number is in a campaign once, however many requests race to add it.
CREATE UNIQUE INDEX leads_once ON leads (campaign_id, phone_number) WHERE NOT duplicate;
CREATE INDEX leads_due ON leads (campaign_id, wait_until, id) WHERE status IN ('created', 'scheduled', 'rescheduled');
CREATE INDEX leads_tried ON leads (campaign_id, status, id) WHERE status NOT IN ('created', 'scheduled');

CREATE TABLE lead_contacts (
  id           {{.ID}},
  user_id      BIGINT NOT NULL, -- the lead's
  lead_id      BIGINT NOT NULL REFERENCES leads (id) ON DELETE CASCADE,
  position     INTEGER NOT NULL,
  phone_number TEXT NOT NULL,
  variables    TEXT NOT NULL,
  status       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX lead_contacts_lead ON lead_contacts (lead_id, position);
CREATE INDEX lead_contacts_number ON lead_contacts (user_id, phone_number);

-- How many leads of a campaign are where, kept by triggers in the transaction that
-- changes them. One row a campaign: transactions that meet at it wait, and never
-- for each other.
CREATE TABLE campaign_progress (
  campaign_id         BIGINT PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
  created             BIGINT NOT NULL DEFAULT 0,
  scheduled           BIGINT NOT NULL DEFAULT 0,
  processing          BIGINT NOT NULL DEFAULT 0,
  completed           BIGINT NOT NULL DEFAULT 0,
  rescheduled         BIGINT NOT NULL DEFAULT 0,
  reached_max_retries BIGINT NOT NULL DEFAULT 0,
  blacklisted         BIGINT NOT NULL DEFAULT 0
);

{{- define "count"}}
  UPDATE campaign_progress p SET
    created             = p.created             + d.created,
    scheduled           = p.scheduled           + d.scheduled,
    processing          = p.processing          + d.processing,
    completed           = p.completed           + d.completed,
    rescheduled         = p.rescheduled         + d.rescheduled,
    reached_max_retries = p.reached_max_retries + d.reached_max_retries,
    blacklisted         = p.blacklisted         + d.blacklisted
  FROM (SELECT campaign_id,
      COALESCE(SUM(n) FILTER (WHERE status = 'created'), 0)             AS created,
      COALESCE(SUM(n) FILTER (WHERE status = 'scheduled'), 0)           AS scheduled,
      COALESCE(SUM(n) FILTER (WHERE status = 'processing'), 0)          AS processing,
      COALESCE(SUM(n) FILTER (WHERE status = 'completed'), 0)           AS completed,
      COALESCE(SUM(n) FILTER (WHERE status = 'rescheduled'), 0)         AS rescheduled,
      COALESCE(SUM(n) FILTER (WHERE status = 'reached-max-retries'), 0) AS reached_max_retries,
      COALESCE(SUM(n) FILTER (WHERE status = 'blacklisted'), 0)         AS blacklisted
    FROM (SELECT campaign_id, status, SUM(n) AS n FROM ({{.}}) each_lead GROUP BY campaign_id, status HAVING SUM(n) <> 0) moved
    GROUP BY campaign_id) d
  WHERE p.campaign_id = d.campaign_id;
  RETURN NULL;
{{- end}}
{{- define "set"}}
  UPDATE campaign_progress SET
    created             = created             {{.}} = 'created'),
    scheduled           = scheduled           {{.}} = 'scheduled'),
    processing          = processing          {{.}} = 'processing'),
    completed           = completed           {{.}} = 'completed'),
    rescheduled         = rescheduled         {{.}} = 'rescheduled'),
    reached_max_retries = reached_max_retries {{.}} = 'reached-max-retries'),
    blacklisted         = blacklisted         {{.}} = 'blacklisted')
{{- end}}

-- +goose StatementBegin
{{- if .Postgres}}
CREATE FUNCTION leads_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{{- template "count" "SELECT campaign_id, status, 1 AS n FROM added"}}
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION leads_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{{- template "count" "SELECT campaign_id, status, -1 AS n FROM removed"}}
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION leads_moved() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
{{- template "count" "SELECT campaign_id, status, 1 AS n FROM added UNION ALL SELECT campaign_id, status, -1 FROM removed"}}
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER leads_added AFTER INSERT ON leads REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION leads_added();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER leads_removed AFTER DELETE ON leads REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION leads_removed();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER leads_moved AFTER UPDATE ON leads REFERENCING OLD TABLE AS removed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION leads_moved();
{{- else}}
CREATE TRIGGER leads_added AFTER INSERT ON leads BEGIN
{{- template "set" "+ (NEW.status"}}
  WHERE campaign_id = NEW.campaign_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER leads_removed AFTER DELETE ON leads BEGIN
{{- template "set" "- (OLD.status"}}
  WHERE campaign_id = OLD.campaign_id;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER leads_moved AFTER UPDATE OF status ON leads WHEN OLD.status <> NEW.status BEGIN
{{- template "set" "- (OLD.status"}}
  WHERE campaign_id = OLD.campaign_id;
{{- template "set" "+ (NEW.status"}}
  WHERE campaign_id = NEW.campaign_id;
END;
{{- end}}
-- +goose StatementEnd
