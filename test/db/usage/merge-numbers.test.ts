// Numbers from the text of an answer to the views, digit by digit.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { parseExact } from "../../../src/service/answer.ts";
import { normalise } from "../../../src/usage/normalise.ts";
import { testDatabase } from "../../support/database.ts";
import { newSeries, rowVersions, store, view } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const RUN_DAY = "2026-03-18";
const zeros = (count: number) => "0".repeat(count);

async function storeText(row: string, seriesId: number, series: Parameters<typeof normalise>[0]["series"]) {
  const answer = parseExact(`{"start": "${DAY}", "end": "${DAY}", "results": [{${row}}]}`);
  const slices = normalise({ series, window: { start: DAY, end: DAY } }, answer, RUN_DAY);
  return store(db, seriesId, slices, { grouping: "none" });
}

test.each<[string, string]>([
  ["0", "0"],
  ["-0", "0"],
  ["-0.0", "0"],
  ["0.0", "0"],
  ["0e9", "0"],
  ["1", "1"],
  ["1.0", "1"],
  ["1.50", "1.5"],
  ["1e3", "1000"],
  ["1E3", "1000"],
  ["1e+3", "1000"],
  ["1e-3", "0.001"],
  ["10e-1", "1"],
  ["0.1", "0.1"],
  ["0.10000000000000000555", "0.10000000000000000555"],
  ["0.30000000000000004", "0.30000000000000004"],
  ["1619.7242069444444", "1619.7242069444444"],
  ["9158866", "9158866"],
  ["9007199254740991", "9007199254740991"],
  ["9007199254740992", "9007199254740992"],
  ["9007199254740993", "9007199254740993"],
  ["9007199254740993.5", "9007199254740993.5"],
  ["18446744073709551616", "18446744073709551616"],
  ["1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"],
  ["0.1234567890123456789012345678901234567891", "0.1234567890123456789012345678901234567891"],
  ["123456789.123456789123456789", "123456789.123456789123456789"],
  ["1e22", `1${zeros(22)}`],
  ["1e308", `1${zeros(308)}`],
  ["1.7976931348623157e308", `17976931348623157${zeros(292)}`],
  ["5e-324", `0.${zeros(323)}5`],
  ["1e-400", `0.${zeros(399)}1`],
])("the service's %s is stored as %s, and is unchanged when it is read again", async (sent, stored) => {
  const { project, series, seriesId } = await newSeries(db, "none");
  const row = `"requests": ${sent}, "credits": ${sent}`;
  await storeText(row, seriesId, series);

  expect(await view(db, "usage_total", project)).toMatchObject([{ requests: stored }]);
  const { rows } = await sql<{ credits: string }>`
    select extra_metrics ->> 'credits' as credits from bi.usage_total where project_id = ${project.id}
  `.execute(db);
  expect(rows).toEqual([{ credits: stored }]);
  expect(await storeText(row, seriesId, series)).toMatchObject({ slices: [{ decision: "unchanged" }] });
});

test.each(["-1", "-1e-400", "1e999", "1e309", "1e-999", `1${zeros(400)}`, '"1"', "true", "[]"])(
  "the service's %s is refused",
  async (sent) => {
    const { series, seriesId } = await newSeries(db, "none");
    await expect(storeText(`"requests": ${sent}`, seriesId, series)).rejects.toMatchObject({ code: "bad_answer" });
    expect(await rowVersions(db, seriesId)).toEqual([]);
  },
);

test("the sum of 0.1 over ten days is 1", async () => {
  const { project, series, seriesId } = await newSeries(db, "none");
  for (let i = 0; i < 10; i++) {
    const day = `2026-03-${10 + i}`;
    const answer = parseExact(`{"start": "${day}", "end": "${day}", "results": [{"hours": 0.1}]}`);
    await store(db, seriesId, normalise({ series, window: { start: day, end: day } }, answer, RUN_DAY), {
      grouping: "none",
    });
  }
  const { rows } = await sql<{ hours: string }>`
    select sum(hours) as hours from bi.usage_total where project_id = ${project.id}
  `.execute(db);
  expect(rows).toEqual([{ hours: "1.0" }]);
});
