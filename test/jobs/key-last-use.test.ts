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

const shows = (text: string) => `the breakdown by accessor ${text}`;

test.each<[string, readonly { accessor: string; day: Day }[], string, string]>([
  [
    "was used if it has usage, of which the newest day is named",
    [use("old-key", "2026-05-04"), use("old-key", "2026-05-02"), use("new-key", TODAY)],
    "yes",
    "shows usage on 2026-05-04",
  ],
  ["was not, if another key has recent usage", [use("new-key", "2026-05-05")], "no", "shows no usage since 2026-05-01"],
  [
    "may have been, if no usage is recent",
    [use("new-key", "2026-05-04")],
    "unknown",
    "shows nothing newer than 2026-05-04, of any key",
  ],
])("a replaced key %s", (_, used, seen, text) => {
  expect(verdict(used)).toEqual({ seen, text: shows(text) });
});

test.each([
  ["there is no usage", [], LISTED],
  ["accessors are not ids of keys", [use("somebody@example.com", TODAY)], LISTED],
  ["the service lists no keys", [use("new-key", TODAY)], new Set<string>()],
])("it is unknown whether a replaced key was used if %s", (_, used, listed) => {
  expect(verdict(used, listed)).toEqual({ seen: "unknown", text: shows("does not tell which key is which") });
});
