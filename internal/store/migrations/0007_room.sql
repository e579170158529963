-- +goose Up
-- How many calls a node holds at once; campaigns reckon with the sum.
ALTER TABLE nodes ADD COLUMN max_calls INTEGER NOT NULL DEFAULT 0;
