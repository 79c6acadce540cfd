// The page on the quality of the data looks for differences before it asks bi.reconciliation, and must show what that view has.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { readQualityData } from "../../../src/db/report/report.ts";
import type { Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { daysBack, type Numbers, newProject } from "../stored-usage.ts";
import { storeSeries } from "./reported-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const period = { start: back(3), end: back(1) };

/** A project with a total and with groups, on the newest day or on the given one. */
function storeBoth(total: readonly Numbers[], groups: readonly Numbers[], grouping: Grouping, day = back(1)) {
  const project = newProject();
  const due = period;
  const named = groups.map((numbers, i) => [`value ${i}`, numbers] as const);
  return [
    { project, due, grouping: "none", usage: { [day]: total.map((numbers) => [undefined, numbers] as const) } },
    { project, due, grouping, usage: { [day]: named } },
  ] as const;
}

test("the differences of a page are those of bi.reconciliation in its days, and the finality counts its slices", async () => {
  await storeSeries(
    db,
    [
      storeBoth([{ requests: "3" }], [{ requests: "1" }, { requests: "2" }], "model"),
      storeBoth([{ hours: "0.3" }], [{ hours: "0.1" }, { hours: "0.20000000000000001" }], "model"),
      storeBoth([{ hours: "3", requests: "30" }], [{ hours: "1", requests: "10" }], "endpoint"),
      storeBoth([{ requests: "3" }], [], "method"),
      storeBoth([], [{ tokens_in: "9007199254740993" }], "accessor"),
      storeBoth([{ requests: "1000000" }], [{ requests: "999999" }], "deployment", back(3)),
      storeBoth([{ hours: "0.000000002" }], [{ hours: "0" }], "model", back(2)),
      storeBoth([{ requests: "3" }], [{ requests: "1" }], "model", back(4)),
      storeBoth([{ requests: "3" }], [{ requests: "1" }], "tags"),
    ].flat(),
  );
  const { rows } = await sql<Record<string, string>>`
    select source, project, "grouping", usage_date as day, metric, trim_scale(total)::text as total,
      trim_scale(sum_of_groups)::text as "sumOfGroups", trim_scale(difference)::text as difference
    from bi.reconciliation where usage_date between ${period.start}::date and ${period.end}::date
    order by usage_date desc, project collate "C", source, "grouping", metric
  `.execute(db);
  expect(rows.length).toBeGreaterThan(5);
  const all = await readQualityData(db, { period, before: undefined }, {});
  expect(all).toMatchObject({ differences: rows, differencesLeftOut: 0 });
  const { rows: finality } = await sql`
    select finality, min(usage_date) as start, max(usage_date) as "end", count(distinct usage_date)::integer as days,
      count(*)::integer as slices
    from bi.coverage where usage_date between ${period.start}::date and ${period.end}::date group by finality order by 2
  `.execute(db);
  expect(all.finality).toEqual(finality);

  const project = rows[0]?.project;
  const ofOne = await readQualityData(db, { period, before: undefined, project }, {});
  expect(ofOne.differences).toEqual(rows.filter((row) => row.project === project));
  const agreeing = await readQualityData(db, { period: { start: back(9), end: back(8) }, before: undefined }, {});
  expect(agreeing).toMatchObject({ differences: [], differencesLeftOut: 0 });
});
