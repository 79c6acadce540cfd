// What the front does to a statement, as seen by the client and in the table.

import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { runStatement } from "../support/postgres-admin.ts";
import { type Action, type FaultEvent, PASS, type Side } from "./fault-decision.ts";
import { startPostgresFront } from "./postgres-front.ts";

const { directUrl: url } = await testDatabase();
await runStatement(url, "create table public.note (text text)");

/** A client behind a front, and the events it made. */
async function connect(act: (event: FaultEvent) => Action, rewrite?: (text: string) => string) {
  const events: string[] = [];
  const decideFault = (event: FaultEvent) => {
    events.push(`${event.side}: ${event.name}`);
    return act(event);
  };
  const front = await startPostgresFront(url, { who: "test", decideFault, ...(rewrite && { rewrite }) });
  const client = new pg.Client({ connectionString: front.url });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(async () => {
    await client.end().catch(() => {});
    await front[Symbol.asyncDispose]();
  });
  return { client, events };
}

/** Does the action at the insert, on its way out or back. */
const at = (side: Side, action: Action) => (event: FaultEvent) =>
  event.side === side && event.name.startsWith("insert") ? action : PASS;

const insert = (text: string): [string, string[]] => ["insert into public.note values ($1)", [text]];

async function isNoted(text: string): Promise<boolean> {
  return (await runStatement(url, `select from public.note where text = '${text}'`)).length === 1;
}

test("each statement of the simple and the extended protocol is an event on its way out and one on its way back", async () => {
  const { client, events } = await connect(() => PASS);

  await client.query("select 1");
  await client.query("select\n  $1::text", ["x"]);

  expect(events).toEqual(["out: select 1", "back: select 1", "out: select $1::text", "back: select $1::text"]);
});

test("a statement that is cut on its way out is not executed", async () => {
  const { client } = await connect(at("out", { kind: "cut" }));

  await expect(client.query(...insert("cut out"))).rejects.toThrow("terminated");

  expect(await isNoted("cut out")).toBe(false);
});

test("a statement that is cut on its way back was executed", async () => {
  const { client } = await connect(at("back", { kind: "cut" }));

  await expect(client.query(...insert("cut back"))).rejects.toThrow("terminated");

  expect(await isNoted("cut back")).toBe(true);
});

test.each(["40001", "53100", "22021"])(
  "an error %s before execution comes from the server itself",
  async (sqlstate) => {
    const { client } = await connect(at("out", { kind: "error", sqlstate }));

    await expect(client.query(...insert(`before ${sqlstate}`))).rejects.toMatchObject({ code: sqlstate });

    expect(await isNoted(`before ${sqlstate}`)).toBe(false);
    expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  },
);

test("an error after execution hides that it was executed", async () => {
  const { client } = await connect(at("back", { kind: "error", sqlstate: "58030" }));

  await expect(client.query(...insert("after"))).rejects.toMatchObject({ code: "58030" });

  expect(await isNoted("after")).toBe(true);
  expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

test("an error in a transaction leaves it to be rolled back", async () => {
  const { client } = await connect(at("out", { kind: "error", sqlstate: "40P01" }));
  await client.query("begin");

  await expect(client.query(...insert("in a transaction"))).rejects.toMatchObject({ code: "40P01" });

  await expect(client.query("select 1")).rejects.toMatchObject({ code: "25P02" });
});

test("an error with which a server ends a session ends the session", async () => {
  const { client } = await connect(at("out", { kind: "error", sqlstate: "57P01" }));

  await expect(client.query(...insert("ended"))).rejects.toMatchObject({ code: "57P01" });

  await expect(client.query("select 1")).rejects.toThrow();
});

test("the text of a statement can be replaced", async () => {
  const { client } = await connect(
    () => PASS,
    (text) => text.replace("'60s'", "'2000ms'"),
  );

  expect((await client.query("select '60s' as told, $1::text as ä", ["ö"])).rows).toEqual([{ told: "2000ms", ä: "ö" }]);
});
