-- +goose Up
-- What no provider offers any more is hidden, not deleted: assistants refer to it, and
-- it keeps its id for the day it comes back.
ALTER TABLE languages ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
ALTER TABLE voices ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
ALTER TABLE models ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX models_offered ON models (provider, key);
