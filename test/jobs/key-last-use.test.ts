// Whether a replaced key was used.

import { expect, test } from "vitest";
import { lastUseVerdict } from "../../src/jobs/key-checks.ts";
import type { Day } from "../../src/usage/days.ts";

const TODAY = "2026-05-08";
const START = "2026-05-01";
const LISTED = new Set(["old-key", "new-key"]);
const use = (accessor: string, day: Day) => ({ accessor, day });
const verdict = (used: readonly { accessor: string; day: Day }[], listed: ReadonlySet<string> = LISTED) =>
  lastUseVerdict({ apiKeyId: "old-key" }, used, listed, START, TODAY);

test("a replaced key with usage was used, and the newest day is named", () => {
  expect(verdict([use("old-key", "2026-05-04"), use("old-key", "2026-05-02"), use("new-key", TODAY)])).toEqual({
    seen: "yes",
    text: "the breakdown by accessor shows usage on 2026-05-04",
  });
});

test("a replaced key was not used if only another listed key has recent usage", () => {
  expect(verdict([use("new-key", "2026-05-05")])).toEqual({
    seen: "no",
    text: "the breakdown by accessor shows no usage since 2026-05-01",
  });
});

test("it is unknown whether a replaced key was used if the newest usage by any key is more than three days old", () => {
  expect(verdict([use("new-key", "2026-05-04")])).toEqual({
    seen: "unknown",
    text: "the breakdown by accessor shows nothing newer than 2026-05-04, of any key",
  });
});

test.each([
  ["there is no usage", [], LISTED],
  ["accessors are not ids of keys", [use("somebody@example.com", TODAY)], LISTED],
  ["the service lists no keys", [use("new-key", TODAY)], new Set<string>()],
])("it is unknown whether a replaced key was used if %s", (_, used, listed) => {
  expect(verdict(used, listed)).toEqual({
    seen: "unknown",
    text: "the breakdown by accessor does not tell which key is which",
  });
});
