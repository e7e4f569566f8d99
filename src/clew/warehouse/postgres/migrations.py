"""The SQL that leads from each version of the tables on a server to the next.

Released migrations never change, so they are plain text, and use no constants of the code. `columns.py` and
`merge_sql.py` describe the tables as they are after the last migration; a test compares them.
"""

from __future__ import annotations

_M001_TABLES = """
CREATE TABLE batches (
  batch text COLLATE "C" NOT NULL, source_id text COLLATE "C" NOT NULL, origin text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL, level text COLLATE "C" NOT NULL, schema_version bigint NOT NULL,
  redact_version text COLLATE "C" NOT NULL, price_version text COLLATE "C" NOT NULL, mtime_ns bigint NOT NULL,
  size bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, is_current boolean NOT NULL DEFAULT false,
  PRIMARY KEY (source_id, batch)
);
CREATE INDEX batches_current ON batches (batch) WHERE is_current;
CREATE INDEX batches_origin ON batches (origin);
CREATE TABLE loaded (batch text COLLATE "C" NOT NULL PRIMARY KEY);
CREATE TABLE sessions_copies (
  batch text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  native_id text COLLATE "C" NOT NULL, parent_session_id text COLLATE "C" NOT NULL, is_agent_session bigint NOT NULL,
  title text COLLATE "C" NOT NULL, workspace text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL,
  git_branch text COLLATE "C" NOT NULL, agent_version text COLLATE "C" NOT NULL, started_us bigint NOT NULL,
  ended_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, message_count bigint NOT NULL,
  turn_count bigint NOT NULL, error_count bigint NOT NULL, active_us bigint NOT NULL,
  shown boolean NOT NULL DEFAULT true, PRIMARY KEY (batch, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE INDEX sessions_by_session_id ON sessions_copies (session_id);
CREATE TABLE messages_copies (
  batch text COLLATE "C" NOT NULL, seq bigint NOT NULL, event_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, native_uuid text COLLATE "C" NOT NULL,
  parent_event_id text COLLATE "C" NOT NULL, ts_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL,
  gap_us bigint NOT NULL, kind text COLLATE "C" NOT NULL, role text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL, git_branch text COLLATE "C" NOT NULL, is_sidechain bigint NOT NULL,
  is_meta bigint NOT NULL, text_chars bigint NOT NULL, shown boolean NOT NULL DEFAULT true,
  PRIMARY KEY (batch, seq, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE INDEX messages_by_event_id ON messages_copies (event_id);
CREATE TABLE blocks_copies (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, event_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, idx bigint NOT NULL, type text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL, chars bigint NOT NULL, call_id text COLLATE "C" NOT NULL, ts_us bigint NOT NULL,
  day_utc text COLLATE "C" NOT NULL, text text COLLATE "C" NOT NULL, words tsvector,
  shown boolean NOT NULL DEFAULT true, PRIMARY KEY (batch, number, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE INDEX blocks_by_words ON blocks_copies USING gin (words);
CREATE TABLE tool_calls_copies (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, call_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, event_id text COLLATE "C" NOT NULL, result_event_id text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  is_error bigint NOT NULL, ts_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, duration_us bigint NOT NULL,
  shown boolean NOT NULL DEFAULT true, PRIMARY KEY (batch, number, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE TABLE usage_copies (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, usage_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, event_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, git_branch text COLLATE "C" NOT NULL,
  ts_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, week_utc text COLLATE "C" NOT NULL,
  month_utc text COLLATE "C" NOT NULL, input_tokens bigint, output_tokens bigint, cache_creation_tokens bigint,
  cache_read_tokens bigint, cache_creation_5m_tokens bigint, cache_creation_1h_tokens bigint, reasoning_tokens bigint,
  cost_nano bigint NOT NULL, is_priced bigint NOT NULL, rate_input bigint, rate_output bigint, rate_cache_read bigint,
  rate_5m bigint, rate_1h bigint, rate_limit bigint, above_input bigint, above_output bigint, above_cache_read bigint,
  above_5m bigint, above_1h bigint, shown boolean NOT NULL DEFAULT true, PRIMARY KEY (batch, number, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE INDEX usage_by_usage_id ON usage_copies (usage_id);
CREATE TABLE file_changes_copies (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, event_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL, op text COLLATE "C" NOT NULL, lines_added bigint, lines_removed bigint,
  ts_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, shown boolean NOT NULL DEFAULT true,
  PRIMARY KEY (batch, number, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE TABLE todos_copies (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, event_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, idx bigint NOT NULL, content text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL, day_utc text COLLATE "C" NOT NULL, shown boolean NOT NULL DEFAULT true,
  PRIMARY KEY (batch, number, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE TABLE usage_merged (
  batch text COLLATE "C" NOT NULL, number bigint NOT NULL, seq bigint NOT NULL, usage_id text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL, event_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, git_branch text COLLATE "C" NOT NULL,
  ts_us bigint NOT NULL, day_utc text COLLATE "C" NOT NULL, week_utc text COLLATE "C" NOT NULL,
  month_utc text COLLATE "C" NOT NULL, input_tokens bigint, output_tokens bigint, cache_creation_tokens bigint,
  cache_read_tokens bigint, cache_creation_5m_tokens bigint, cache_creation_1h_tokens bigint, reasoning_tokens bigint,
  cost_nano bigint NOT NULL, is_priced bigint NOT NULL, rate_input bigint, rate_output bigint, rate_cache_read bigint,
  rate_5m bigint, rate_1h bigint, rate_limit bigint, above_input bigint, above_output bigint, above_cache_read bigint,
  above_5m bigint, above_1h bigint, PRIMARY KEY (usage_id, day_utc)
) PARTITION BY RANGE (day_utc);
CREATE INDEX usage_merged_batch ON usage_merged (batch);
CREATE TABLE usage_days_sums (
  batch text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL, project text COLLATE "C" NOT NULL, git_branch text COLLATE "C" NOT NULL,
  day_utc text COLLATE "C" NOT NULL, week_utc text COLLATE "C" NOT NULL, month_utc text COLLATE "C" NOT NULL,
  calls bigint, priced_calls bigint, input_tokens bigint, output_tokens bigint, cache_read_tokens bigint,
  cache_creation_5m_tokens bigint, cache_creation_1h_tokens bigint, reasoning_tokens bigint, cost_nano bigint,
  min_ts_us bigint, max_ts_us bigint
) PARTITION BY RANGE (day_utc);
CREATE INDEX usage_days_by_batch ON usage_days_sums (batch);
CREATE TABLE tool_days_sums (
  batch text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, day_utc text COLLATE "C" NOT NULL,
  tool_calls bigint, tool_errors bigint, tool_us bigint, longest_us bigint
) PARTITION BY RANGE (day_utc);
CREATE INDEX tool_days_by_batch ON tool_days_sums (batch);
CREATE TABLE change_days_sums (
  batch text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL, path text COLLATE "C" NOT NULL, day_utc text COLLATE "C" NOT NULL,
  lines_added bigint, lines_removed bigint
) PARTITION BY RANGE (day_utc);
CREATE INDEX change_days_by_batch ON change_days_sums (batch);
CREATE TABLE sessions_copies_default PARTITION OF sessions_copies DEFAULT;
CREATE TABLE messages_copies_default PARTITION OF messages_copies DEFAULT;
CREATE TABLE blocks_copies_default PARTITION OF blocks_copies DEFAULT;
CREATE TABLE tool_calls_copies_default PARTITION OF tool_calls_copies DEFAULT;
CREATE TABLE usage_copies_default PARTITION OF usage_copies DEFAULT;
CREATE TABLE file_changes_copies_default PARTITION OF file_changes_copies DEFAULT;
CREATE TABLE todos_copies_default PARTITION OF todos_copies DEFAULT;
CREATE TABLE usage_merged_default PARTITION OF usage_merged DEFAULT;
CREATE TABLE usage_days_sums_default PARTITION OF usage_days_sums DEFAULT;
CREATE TABLE tool_days_sums_default PARTITION OF tool_days_sums DEFAULT;
CREATE TABLE change_days_sums_default PARTITION OF change_days_sums DEFAULT;
CREATE OR REPLACE VIEW sessions AS SELECT
  batch, session_id, agent, native_id, parent_session_id, is_agent_session, title, workspace, project, git_branch,
  agent_version, started_us, ended_us, day_utc, message_count, turn_count, error_count, active_us
FROM sessions_copies WHERE shown;
CREATE OR REPLACE VIEW messages AS SELECT
  batch, seq, event_id, session_id, agent, native_uuid, parent_event_id, ts_us, day_utc, gap_us, kind, role, model,
  git_branch, is_sidechain, is_meta, text_chars
FROM messages_copies WHERE shown;
CREATE OR REPLACE VIEW blocks AS SELECT
  batch, number, seq, event_id, session_id, idx, type, kind, chars, call_id, ts_us, day_utc, text
FROM blocks_copies WHERE shown AND seq > 0;
CREATE OR REPLACE VIEW tool_calls AS SELECT
  batch, number, seq, call_id, session_id, event_id, result_event_id, agent, project, name, is_error, ts_us, day_utc,
  duration_us
FROM tool_calls_copies WHERE shown;
CREATE OR REPLACE VIEW file_changes AS SELECT
  batch, number, seq, event_id, session_id, agent, project, path, op, lines_added, lines_removed, ts_us, day_utc
FROM file_changes_copies WHERE shown;
CREATE OR REPLACE VIEW todos AS SELECT
  batch, number, seq, event_id, session_id, idx, content, status, day_utc
FROM todos_copies WHERE shown;
CREATE VIEW usage AS SELECT
  batch, number, seq, usage_id, session_id, event_id, agent, model, project, git_branch, ts_us, day_utc, week_utc,
  month_utc, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens,
  CASE WHEN cache_creation_5m_tokens IS NULL THEN cache_creation_tokens - COALESCE(cache_creation_1h_tokens, 0)
    ELSE cache_creation_5m_tokens END AS cache_creation_5m_tokens,
  cache_creation_1h_tokens, reasoning_tokens, cost_nano, is_priced, rate_input, rate_output, rate_cache_read, rate_5m,
  rate_1h, rate_limit, above_input, above_output, above_cache_read, above_5m, above_1h
FROM (
  SELECT
    batch, number, seq, usage_id, session_id, event_id, agent, model, project, git_branch, ts_us, day_utc, week_utc,
    month_utc, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, cache_creation_5m_tokens,
    cache_creation_1h_tokens, reasoning_tokens, cost_nano, is_priced, rate_input, rate_output, rate_cache_read,
    rate_5m, rate_1h, rate_limit, above_input, above_output, above_cache_read, above_5m, above_1h
  FROM usage_copies WHERE shown
  UNION ALL SELECT
    batch, number, seq, usage_id, session_id, event_id, agent, model, project, git_branch, ts_us, day_utc, week_utc,
    month_utc, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, cache_creation_5m_tokens,
    cache_creation_1h_tokens, reasoning_tokens, cost_nano, is_priced, rate_input, rate_output, rate_cache_read,
    rate_5m, rate_1h, rate_limit, above_input, above_output, above_cache_read, above_5m, above_1h
  FROM usage_merged
) x;
CREATE VIEW usage_days AS SELECT
  session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc, calls, priced_calls, input_tokens,
  output_tokens, cache_read_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, reasoning_tokens, cost_nano,
  min_ts_us, max_ts_us
FROM usage_days_sums;
CREATE VIEW tool_days AS SELECT
  session_id, agent, project, name, day_utc, tool_calls, tool_errors, tool_us, longest_us
FROM tool_days_sums;
CREATE VIEW change_days AS SELECT
  session_id, agent, project, path, day_utc, lines_added, lines_removed
FROM change_days_sums;
"""
"""All tables and views."""

_M002_HAS_SUBAGENT_RECORDS = """
ALTER TABLE sessions_copies ADD COLUMN has_subagent_records bigint;
-- Replaced, not dropped: that would drop the rights of readers too. A new column can only be the last one.
CREATE OR REPLACE VIEW sessions AS SELECT
  batch, session_id, agent, native_id, parent_session_id, is_agent_session, title, workspace, project, git_branch,
  agent_version, started_us, ended_us, day_utc, message_count, turn_count, error_count, active_us,
  has_subagent_records
FROM sessions_copies WHERE shown;
"""
"""The column `sessions.has_subagent_records`; NULL in rows that were pushed before."""

_M003_QUARTER_HOURS = """
TRUNCATE usage_days_sums;
ALTER TABLE usage_days_sums ADD COLUMN quarter_hour_us bigint NOT NULL;
INSERT INTO usage_days_sums SELECT
  batch, session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc, COUNT(*), SUM(is_priced),
  SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens), SUM(cache_creation_5m_tokens),
  SUM(cache_creation_1h_tokens), SUM(reasoning_tokens), SUM(cost_nano), MIN(ts_us), MAX(ts_us),
  ts_us - ts_us % 900000000
FROM usage GROUP BY
  batch, session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc, ts_us - ts_us % 900000000;
CREATE OR REPLACE VIEW usage_days AS SELECT
  session_id, agent, model, project, git_branch, day_utc, week_utc, month_utc, calls, priced_calls, input_tokens,
  output_tokens, cache_read_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, reasoning_tokens, cost_nano,
  min_ts_us, max_ts_us, quarter_hour_us
FROM usage_days_sums;
TRUNCATE tool_days_sums;
ALTER TABLE tool_days_sums ADD COLUMN quarter_hour_us bigint NOT NULL;
INSERT INTO tool_days_sums SELECT
  batch, session_id, agent, project, name, day_utc, COUNT(*), SUM(is_error), SUM(duration_us), MAX(duration_us),
  ts_us - ts_us % 900000000
FROM tool_calls GROUP BY
  batch, session_id, agent, project, name, day_utc, ts_us - ts_us % 900000000;
CREATE OR REPLACE VIEW tool_days AS SELECT
  session_id, agent, project, name, day_utc, tool_calls, tool_errors, tool_us, longest_us, quarter_hour_us
FROM tool_days_sums;
TRUNCATE change_days_sums;
ALTER TABLE change_days_sums ADD COLUMN quarter_hour_us bigint NOT NULL;
INSERT INTO change_days_sums SELECT
  batch, session_id, agent, project, path, day_utc, SUM(lines_added), SUM(lines_removed), ts_us - ts_us % 900000000
FROM file_changes GROUP BY
  batch, session_id, agent, project, path, day_utc, ts_us - ts_us % 900000000;
CREATE OR REPLACE VIEW change_days AS SELECT
  session_id, agent, project, path, day_utc, lines_added, lines_removed, quarter_hour_us
FROM change_days_sums;
"""
"""Sums for each quarter of an hour in place of each day in UTC, so that days of any zone can be summed."""

_M004_TURNS = """
CREATE VIEW turns AS SELECT
  m.batch, m.event_id, m.session_id, m.agent, s.project, m.ts_us, m.day_utc
FROM messages_copies m JOIN sessions_copies s ON s.batch = m.batch
WHERE m.shown AND m.kind = 'user' AND m.is_sidechain = 0 AND s.is_agent_session = 0;
CREATE TABLE turn_days_sums (
  batch text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
  project text COLLATE "C" NOT NULL, day_utc text COLLATE "C" NOT NULL, turns bigint, quarter_hour_us bigint NOT NULL
) PARTITION BY RANGE (day_utc);
CREATE INDEX turn_days_by_batch ON turn_days_sums (batch);
CREATE TABLE turn_days_sums_default PARTITION OF turn_days_sums DEFAULT;
INSERT INTO turn_days_sums SELECT
  batch, session_id, agent, project, day_utc, COUNT(*), ts_us - ts_us % 900000000
FROM turns GROUP BY
  batch, session_id, agent, project, day_utc, ts_us - ts_us % 900000000;
CREATE VIEW turn_days AS SELECT
  session_id, agent, project, day_utc, turns, quarter_hour_us
FROM turn_days_sums;
"""
"""What people asked, and its sums for each quarter of an hour."""

_M005_SUMS = """SUM(calls)::bigint AS calls,
  SUM(unknown_cost_calls)::bigint AS unknown_cost_calls,
  SUM(input_tokens)::bigint AS input_tokens, SUM(output_tokens)::bigint AS output_tokens,
  SUM(cache_read_tokens)::bigint AS cache_read_tokens,
  SUM(cache_creation_5m_tokens)::bigint AS cache_creation_5m_tokens,
  SUM(cache_creation_1h_tokens)::bigint AS cache_creation_1h_tokens,
  SUM(reasoning_tokens)::bigint AS reasoning_tokens, SUM(cost_nano)::bigint AS cost_nano"""
"""The columns of the views of usage: sums of those of `person_usage`."""

_M005_PERSONS = f"""
ALTER TABLE batches ADD COLUMN person text COLLATE "C";
CREATE FUNCTION set_person() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The login role of the connection. No statement chooses it, SET ROLE does not change it, and it stays as it is.
  NEW.person := session_user;
  IF TG_OP = 'UPDATE' THEN
    NEW.person := coalesce(OLD.person, session_user);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER set_person BEFORE INSERT OR UPDATE ON batches FOR EACH ROW EXECUTE FUNCTION set_person();
CREATE TABLE team_members (
  person text COLLATE "C" NOT NULL PRIMARY KEY, team text COLLATE "C" NOT NULL
);
CREATE VIEW person_usage AS SELECT
  coalesce(p.person, '') AS person, coalesce(t.team, '') AS team, u.agent, u.project, u.git_branch, u.model,
  u.month_utc, u.day_utc, SUM(u.calls)::bigint AS calls, SUM(u.calls - u.priced_calls)::bigint AS unknown_cost_calls,
  SUM(u.input_tokens)::bigint AS input_tokens, SUM(u.output_tokens)::bigint AS output_tokens,
  SUM(u.cache_read_tokens)::bigint AS cache_read_tokens,
  SUM(u.cache_creation_5m_tokens)::bigint AS cache_creation_5m_tokens,
  SUM(u.cache_creation_1h_tokens)::bigint AS cache_creation_1h_tokens,
  SUM(u.reasoning_tokens)::bigint AS reasoning_tokens,
  CASE WHEN SUM(u.priced_calls) > 0 THEN SUM(u.cost_nano)::bigint END AS cost_nano
FROM usage_days_sums u
  LEFT JOIN (SELECT batch, min(person) AS person FROM batches WHERE is_current GROUP BY batch) p ON p.batch = u.batch
  LEFT JOIN team_members t ON t.person = p.person
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
CREATE VIEW usage_by_person AS SELECT
  person, team, month_utc, day_utc, {_M005_SUMS}
FROM person_usage GROUP BY person, team, month_utc, day_utc;
CREATE VIEW usage_by_team AS SELECT
  team, month_utc, day_utc, {_M005_SUMS}
FROM person_usage GROUP BY team, month_utc, day_utc;
CREATE VIEW usage_by_project AS SELECT
  project, month_utc, day_utc, {_M005_SUMS}
FROM person_usage GROUP BY project, month_utc, day_utc;
CREATE VIEW usage_by_branch AS SELECT
  project, git_branch, month_utc, day_utc, {_M005_SUMS}
FROM person_usage GROUP BY project, git_branch, month_utc, day_utc;
CREATE VIEW usage_by_model AS SELECT
  model, month_utc, day_utc, {_M005_SUMS}
FROM person_usage GROUP BY model, month_utc, day_utc;
"""
"""Who pushed, which team they are in, and views of usage by person, team, project, branch and model.

A batch that several people pushed, because they have equal copies of a session, counts for one of them.
"""

MIGRATIONS = (_M001_TABLES, _M002_HAS_SUBAGENT_RECORDS, _M003_QUARTER_HOURS, _M004_TURNS, _M005_PERSONS)
