// Calls the service through its public SDK, with at most CAP requests at once, and passes the rows of each answer to `store`.

import { json } from "node:stream/consumers";
import { DeepgramClient } from "@deepgram/sdk";

export type Request = {
  readonly project: string;
  readonly grouping: string;
  readonly start: string;
  readonly end: string;
};

export type Row = {
  readonly project_id: string;
  readonly usage_date: string;
  readonly dimension: string;
  readonly group_value: string;
  readonly hours: number;
  readonly total_hours: number;
  readonly agent_hours: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tts_characters: number;
  readonly requests: number;
};

export const CREATE_TABLE = `
  create table if not exists usage_row (
    project_id text not null, usage_date date not null, dimension text not null, group_value text not null,
    hours numeric, total_hours numeric, agent_hours numeric, tokens_in numeric, tokens_out numeric,
    tts_characters numeric, requests numeric,
    primary key (project_id, usage_date, dimension, group_value)
  )
`;

/** The variables that the benchmark sets. The requests come on standard input, as JSON. */
export function settings(): { database: string; service: string; cap: number } {
  const { SERVICE = "", DATABASE_URL = "", CAP = "1" } = process.env;
  return { database: DATABASE_URL, service: SERVICE, cap: Number(CAP) };
}

export async function exportAll(store: (rows: readonly Row[]) => Promise<unknown>): Promise<void> {
  const { service, cap } = settings();
  const requests = (await json(process.stdin)) as readonly Request[];
  const client = new DeepgramClient({
    apiKey: "key-of-the-benchmark",
    environment: { base: service, production: service, agent: service, agentRest: service },
  });
  const queue = requests.values();
  const work = async () => {
    for (const { project, grouping, start, end } of queue) {
      const answer = await client.manage.v1.projects.usage.breakdown.get(project, {
        start,
        end,
        grouping: grouping as "model",
      });
      await store(answer.results.map((row) => rowOf(project, grouping, row as never)));
    }
  };
  await Promise.all(Array.from({ length: cap }, work));
}

type Result = Omit<Row, "project_id" | "usage_date" | "dimension" | "group_value"> & {
  readonly grouping: Readonly<Record<string, string | readonly string[] | null>>;
};

function rowOf(project: string, dimension: string, { grouping, ...metrics }: Result): Row {
  const value = grouping[dimension] ?? "";
  return {
    ...metrics,
    project_id: project,
    usage_date: String(grouping.start),
    dimension,
    group_value: typeof value === "string" ? value : JSON.stringify(value),
  };
}
