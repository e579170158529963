-- +goose Up
-- Which node ended a call: the one that waits, when it stops, for the work that follows.
ALTER TABLE calls ADD COLUMN ended_on TEXT;
