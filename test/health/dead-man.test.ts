// A worker pings the dead man's switch only while all is well.

import { expect, test } from "vitest";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { daysBack, store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { testNotices } from "./test-notifier.ts";

const { db } = await testDatabase();

test("the dead man's switch is pinged once a minute while all is well, and not while a slice is failed", async () => {
  await using notices = await testNotices(db);
  const { tick, counts } = notices.notifier("deadMan");
  for (let i = 0; i < 5; i++) await tick();
  // A new minute may have begun during the ticks; then there are two pings.
  expect(notices.asked.length).toBeLessThanOrEqual(2);
  expect(notices.asked[0]).toBe("GET /deadMan");
  expect(counts[0]).toBe("dead_man sent");

  const pings = notices.asked.length;
  const day = (await daysBack(db))(1);
  const { seriesId } = notices;
  await recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "down" });
  await notices.notifier("deadMan").tick();
  expect(notices.asked).toHaveLength(pings);

  await store(db, seriesId, [total(day, { requests: "1" })], { grouping: "none" });
  await notices.notifier("deadMan").tick();
  expect(notices.asked).toHaveLength(pings + 1);
});
