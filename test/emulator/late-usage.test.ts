import { expect, test } from "vitest";
import type { Emulator } from "../support/emulator.ts";
import { breakdown, type Row, start } from "./ask.ts";

const DAY = "2026-03-10";

async function rowsAt(emulator: Emulator, instant: string, grouping = ""): Promise<Row[]> {
  emulator.now = () => new Date(instant);
  const { results } = await breakdown(emulator, `start=${DAY}&end=${DAY}&grouping=${grouping}`);
  return results;
}

test("the numbers of a day stay the same during the next day, and change in most groups on the day after", async () => {
  await using emulator = await start();
  const early = await rowsAt(emulator, "2026-03-11T00:00:00Z", "accessor");
  expect(await rowsAt(emulator, "2026-03-11T23:59:59Z", "accessor")).toEqual(early);

  const next = await rowsAt(emulator, "2026-03-12T00:00:00Z", "accessor");
  const restated = next.filter((row, i) => row.requests !== early[i]?.requests);
  expect(restated.length).toBeGreaterThan(next.length / 2);
});
