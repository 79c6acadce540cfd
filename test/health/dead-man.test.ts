// A worker pings the dead man's switch only while all is well.

import { expect, test } from "vitest";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { daysBack, store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { openNotifierFixture } from "./test-notifier.ts";

const { db } = await testDatabase();

test("the dead man's switch is pinged once a minute while all is well, and not while a slice is failed", async () => {
  await using fixture = await openNotifierFixture(db);
  const { tick } = fixture.notifier("deadMan");
  for (let i = 0; i < 5; i++) await tick();
  // A new minute may have begun during the ticks; then there are two pings.
  expect(fixture.requests.length).toBeLessThanOrEqual(2);
  expect(fixture.requests[0]).toBe("GET /deadMan");

  const pings = fixture.requests.length;
  const day = (await daysBack(db))(1);
  const { seriesId } = fixture;
  await recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "down" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings);

  await store(db, seriesId, [total(day, { requests: "1" })], { grouping: "none" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings + 1);
});
