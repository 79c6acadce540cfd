import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import type { Dialect } from "../../src/usage/dimensions.ts";
import { KEY_RING, limit, serve } from "../service/open-test-service.ts";
import { testDatabase } from "../support/database.ts";
import { answerJson, type Script } from "../support/scripted-server.ts";
import { sampleAnswer, sampleRequest, sampleRow, windowless } from "../usage/sample-request.ts";

const { db: database } = await testDatabase();

const NAMES = { interface: "model", "2026": "models" } as const;
const BY_MODEL = sampleRequest("model");

/** A service that groups by model only in the dialect that `spoken` returns, and `Dialects` on this service. */
async function open(dialect: Dialect | "auto", spoken: () => Dialect | undefined, db?: Database) {
  const script: Script = ({ target }, response) => {
    const grouping = new URL(target, "http://service").searchParams.get("grouping");
    const speaks = spoken();
    const rows = speaks && grouping === NAMES[speaks] ? [sampleRow("2026-03-17", { [NAMES[speaks]]: "nova" })] : [];
    answerJson(response, 200, sampleAnswer(rows));
  };
  const { server, service } = await serve(script, { dialect });
  const app = { log: pino({ level: "silent" }), signal: limit() } as unknown as App;
  return { server, dialects: new Dialects({ app, db, service, keys: KEY_RING }) };
}

test("the probe requests recent days first, because an old window may have no usage", async () => {
  const windowed = await open("auto", () => "2026");
  await windowed.dialects.forRequest(BY_MODEL);
  expect(windowed.server.requests[0]?.target).not.toContain("2026-03-17");
  const undated = await open("auto", () => "2026");
  await undated.dialects.forRequest(windowless("model"));
  expect(undated.server.requests[0]?.target).not.toContain("start=");
});

test("no probe is made for a configured dialect or for a request that is the same in both dialects", async () => {
  const configured = await open("interface", () => "2026");
  expect(await configured.dialects.forRequest(BY_MODEL)).toBe("interface");
  const opened = await open("auto", () => "interface");
  await opened.dialects.forRequest(sampleRequest("endpoint"));
  expect([configured, opened].map(({ server }) => server.requests.length)).toEqual([0, 0]);
});

test("a request that still reads the database uses a dialect that is found meanwhile", async () => {
  let spoken: Dialect | undefined = "interface";
  const opened = await open("auto", () => spoken, database);
  const late = await database.transaction().execute(async (tx) => {
    await sql`lock table usage_export.service_dialect`.execute(tx);
    const countBlocked = sql<{ blocked: number }>`
      select count(*)::integer as blocked from pg_locks where relation = 'usage_export.service_dialect'::regclass and not granted
    `;
    const blocked = async () => (await countBlocked.execute(tx)).rows[0]?.blocked;
    const reading = opened.dialects.forRequest(BY_MODEL);
    await expect.poll(blocked).toBe(1);
    const probing = opened.dialects.alternative(BY_MODEL, "2026");
    await expect.poll(blocked).toBe(2);
    // From now on no probe finds a dialect.
    spoken = undefined;
    return { reading, probing };
  });
  expect(await late.reading).toBe("interface");
  expect(await late.probing).toBe("interface");
});
