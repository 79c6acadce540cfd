// If an answer can't be right, or the service does not answer, the last good numbers stay, and coverage says why there are no newer
// ones.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { changeRows, type Fault } from "../../support/emulator.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { lastCoverage, rowsAsWritten } from "../stored-rows.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const json = (body: string, headers = {}): Fault => ({
  kind: "answer",
  status: 200,
  headers: { "content-type": "application/json", ...headers },
  body,
});

/** Each fault with the words of its error that say what happened. */
const DOUBTFUL: Readonly<Record<string, readonly [Fault, RegExp]>> = {
  html: [
    { kind: "answer", status: 200, headers: { "content-type": "text/html" }, body: "<html>Log in</html>" },
    /HTML page/,
  ],
  null: [json("null"), /expected an object, got null/],
  "no body": [json(""), /empty/],
  "cut json": [json('{"start":"20'), /not valid JSON/],
  "other bytes": [
    {
      kind: "answer",
      status: 200,
      headers: { "content-type": "application/json" },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    },
    /UTF-8/,
  ],
  compressed: [json("{}", { "content-encoding": "gzip" }), /compressed \(gzip\)/],
  twice: [
    changeRows((rows) => rows.flatMap((row) => [row, { ...row, requests: 1 }])),
    /two rows with different numbers for endpoint listen/,
  ],
  redirect: [{ kind: "answer", status: 302, headers: { location: "https://elsewhere.test/" } }, /redirect/],
  "not found": [{ kind: "answer", status: 404, body: "no such thing here" }, /404.*no such thing here/],
};

test("a doubtful answer changes no number, and coverage says what is wrong with it", async ({ context }) => {
  const cases = Object.keys(DOUBTFUL);
  const emulator = await context.serve({
    usage: () => cases.map((accessor) => ({ accessor, endpoint: "listen", requests: 5, hours: 1.5 })),
  });
  // Each case has a series of its own. The fault plan finds the case by the value of the series' filter.
  const filters = cases.map((name) => ({ name, dimensions: { accessor: name } }));
  await context.configure(smallConfig(emulator.url, { exports: [{ groupings: ["endpoint"], filters }] }));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  const good = await rowsAsWritten(db);

  emulator.fault = ({ path }) => DOUBTFUL[new URL(path, emulator.url).searchParams.get("accessor") ?? ""]?.[0];
  expect(await context.run(["export"])).toMatchObject({ status: 1 });

  expect(good).toHaveLength(2 * cases.length);
  expect(await rowsAsWritten(db)).toEqual(good);
  const expected = Object.entries(DOUBTFUL).map(([filter, [, words]]) => [
    filter,
    { status: "failed", error: expect.stringMatching(words) },
  ]);
  expect(await lastCoverage(db)).toEqual(Object.fromEntries(expected));
});
