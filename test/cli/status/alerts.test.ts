// The commands `alerts`, `alerts snooze` and `alerts unsnooze`, and what `status` says of a snoozed alert.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const DAY_MS = 24 * 60 * 60 * 1000;

function inDays(days: number): string {
  return `${new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 16)}Z`;
}

test("a snoozed alert is shown as such everywhere, does not fail `status`, and is an alert again after the end", async ({
  context,
}) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await context.run(["export"]);
  expect(await context.run(["alerts"])).toMatchObject({ status: 0, stdout: "no alert\n" });
  await ageStoredData(db, 1);

  expect((await context.run(["alerts"])).stdout).toMatch(
    /^gaps: 1 slice missing: due and never read\ngaps nightly: export nightly has gaps: /,
  );
  const until = inDays(2);
  const written = until.replace("T", " ").replace("Z", " UTC");
  const snoozed = await context.run(["alerts", "snooze", "gaps nightly", "--until", until]);
  expect(snoozed).toMatchObject({ status: 0, stdout: `gaps nightly is snoozed until ${written}\n` });

  const { status, stdout } = await context.run(["status"]);
  expect(stdout).toContain(
    `all is well\nsnoozed:\n  1 slice missing: due and never read (snoozed until ${written} by `,
  );
  expect(status).toBe(0);
  const json = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(json).toMatchObject({
    alerts: [],
    snoozed: [{ name: "gaps", text: "1 slice missing: due and never read", until: until.replace("Z", ":00.000Z") }],
  });
  expect(JSON.parse((await context.run(["alerts", "--json"])).stdout).snoozes).toMatchObject([
    { name: "gaps nightly" },
  ]);

  await sql`update usage_export.snooze set until = now()`.execute(db);
  const after = await context.run(["status"]);
  expect(after.stdout).toMatch(/^not well:\n {2}1 slice missing: due and never read\n(?!snoozed)/);
  expect(after.status).toBe(1);
});

test("`alerts unsnooze` ends a snooze at once", async ({ context }) => {
  await context.configure(smallConfig("https://api.example.com"));
  const { stdout } = await context.run(["alerts", "snooze", "export nightly", "--until", inDays(1)]);
  expect(stdout).toMatch(/; no such alert is open now, and one that opens until then is not notified\n$/);
  expect((await context.run(["alerts"])).stdout).toMatch(/^export nightly: snoozed until .*; no such alert is open\n$/);

  expect(await context.run(["alerts", "unsnooze", "export nightly"])).toMatchObject({ status: 0 });
  expect((await context.run(["alerts"])).stdout).toBe("no alert\n");
  const again = await context.run(["alerts", "unsnooze", "export nightly"]);
  expect(again.stderr).toContain('"export nightly" is not snoozed; nothing is');
  expect(again.status).toBe(2);
});

test("`alerts snooze` refuses a name that no alert can have and a time that is past, far away or without a zone", async ({
  context,
}) => {
  await context.configure(smallConfig("https://api.example.com"));
  const refusal = async (name: string, until: string) => {
    const { status, stderr } = await context.run(["alerts", "snooze", name, "--until", until]);
    expect(status).toBe(2);
    return stderr;
  };
  expect(await refusal("gap nightly", inDays(1))).toMatch(
    /as `alerts` lists it.* got "gap nightly"; did you mean "gaps"/,
  );
  expect(await refusal("gaps", inDays(-1))).toMatch(/--until: expected a time after .*; got /);
  expect(await refusal("gaps", inDays(500))).toMatch(/--until: expected a time after .*, at most 366 days later/);
  expect(await refusal("gaps", "2026-11-24T08:00")).toContain("expected a day, as 2026-11-24, or a time with its zone");
  expect((await context.run(["alerts"])).stdout).toBe("no alert\n");
});
