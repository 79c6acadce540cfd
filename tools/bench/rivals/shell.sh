#!/usr/bin/env bash
# Stores answers with curl, jq and psql, CAP requests at once. MODE=upsert: an INSERT ... ON CONFLICT of the answer's rows; MODE=copy:
# \copy into a temporary table, and a merge. Also reads SERVICE and DATABASE_URL. Standard input has a request a line: project grouping start end.
set -euo pipefail

export COLUMNS_ALL="project_id, usage_date, dimension, group_value, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests"
export UPDATE_ALL="hours = excluded.hours, total_hours = excluded.total_hours, agent_hours = excluded.agent_hours, tokens_in = excluded.tokens_in,
  tokens_out = excluded.tokens_out, tts_characters = excluded.tts_characters, requests = excluded.requests"

psql --quiet "$DATABASE_URL" <<'SQL'
create table if not exists usage_row (
  project_id text not null, usage_date date not null, dimension text not null, group_value text not null,
  hours numeric, total_hours numeric, agent_hours numeric, tokens_in numeric, tokens_out numeric,
  tts_characters numeric, requests numeric,
  primary key (project_id, usage_date, dimension, group_value)
);
SQL

one() {
  local project=$1 grouping=$2 start=$3 end=$4
  local fields='[$project, .grouping.start, $dimension, (.grouping[$dimension] | if type == "string" then . else tojson end), .hours, .total_hours, .agent_hours, .tokens_in, .tokens_out, .tts_characters, .requests]'
  local rows
  rows=$(curl --silent --fail --header "Authorization: Token key-of-the-benchmark" \
    "$SERVICE/v1/projects/$project/usage/breakdown?start=$start&end=$end&grouping=$grouping" |
    jq --raw-output --arg project "$project" --arg dimension "$grouping" ".results[] | $fields | @csv")
  if [ "$MODE" = copy ]; then
    psql --quiet --set ON_ERROR_STOP=1 "$DATABASE_URL" --command "begin" \
      --command "create temporary table incoming (like usage_row) on commit drop" \
      --command "\\copy incoming from pstdin (format csv)" \
      --command "insert into usage_row select * from incoming on conflict (project_id, usage_date, dimension, group_value) do update set $UPDATE_ALL" \
      --command "commit" <<<"$rows"
  else
    # Texts of CSV become texts of SQL.
    { echo "insert into usage_row ($COLUMNS_ALL) values"
      sed -e "s/'/''/g" -e "s/\"\"/\x01/g" -e "s/\"/'/g" -e "s/\x01/\"/g" -e 's/^/(/' -e 's/$/),/' -e '$ s/,$//' <<<"$rows"
      echo "on conflict (project_id, usage_date, dimension, group_value) do update set $UPDATE_ALL;"
    } | psql --quiet --set ON_ERROR_STOP=1 "$DATABASE_URL"
  fi
}
export -f one

xargs --max-procs="$CAP" --max-lines=1 bash -c 'one "$@"' one
