// A program: stores the SDK's answers with TypeORM, by the upsert that its guide shows (repository.upsert).

import { DataSource, EntitySchema } from "typeorm";
import { CREATE_TABLE, exportAll, type Row, settings } from "./sdk.ts";

const key = (type: "text" | "date") => ({ type, primary: true }) as const;
const amount = { type: "numeric", nullable: true } as const;

const UsageRow = new EntitySchema<Row>({
  name: "usage_row",
  columns: {
    project_id: key("text"),
    usage_date: key("date"),
    dimension: key("text"),
    group_value: key("text"),
    hours: amount,
    total_hours: amount,
    agent_hours: amount,
    tokens_in: amount,
    tokens_out: amount,
    tts_characters: amount,
    requests: amount,
  },
});

const source = new DataSource({ type: "postgres", url: settings().database, entities: [UsageRow] });
await source.initialize();
await source.query(CREATE_TABLE);
const repository = source.getRepository(UsageRow);
await exportAll((rows) => repository.upsert([...rows], ["project_id", "usage_date", "dimension", "group_value"]));
await source.destroy();
