import { describe, expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { lastUseVerdict, retryWhileUnknown } from "../../src/jobs/verify-key.ts";
import { Secret } from "../../src/secret.ts";
import type { Day } from "../../src/usage/days.ts";

describe("whether a replaced key was used", () => {
  const TODAY = "2026-05-08";
  const START = "2026-05-01";
  const LISTED = new Set(["old-key", "new-key"]);
  const use = (accessor: string, day: Day) => ({ accessor, day });
  const verdict = (used: readonly { accessor: string; day: Day }[], listed: ReadonlySet<string> = LISTED) =>
    lastUseVerdict({ apiKeyId: "old-key" }, used, listed, START, TODAY);

  test("yes, with the newest day, if the key has usage", () => {
    expect(verdict([use("old-key", "2026-05-04"), use("old-key", "2026-05-02"), use("new-key", TODAY)])).toEqual({
      seen: "yes",
      text: "the breakdown by accessor shows usage on 2026-05-04",
    });
  });

  test("no, if only another listed key has recent usage", () => {
    expect(verdict([use("new-key", "2026-05-05")])).toEqual({
      seen: "no",
      text: "the breakdown by accessor shows no usage since 2026-05-01",
    });
  });

  test("unknown, if the newest usage by any key is more than three days old", () => {
    expect(verdict([use("new-key", "2026-05-04")])).toEqual({
      seen: "unknown",
      text: "the breakdown by accessor shows nothing newer than 2026-05-04, of any key",
    });
  });

  test.each([
    ["there is no usage", [], LISTED],
    ["accessors are not ids of keys", [use("somebody@example.com", TODAY)], LISTED],
    ["the service lists no keys", [use("new-key", TODAY)], new Set<string>()],
  ])("unknown, if %s", (_, used, listed) => {
    expect(verdict(used, listed)).toEqual({
      seen: "unknown",
      text: "the breakdown by accessor does not tell which key is which",
    });
  });
});

describe("a call with a key that the service may not know yet", () => {
  const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");
  const refusal = (status: number) =>
    new AppError("unauthorized", `the service answered ${status}`, { details: { status } });

  /** Makes a call that fails with these errors, one at each attempt, and then succeeds. */
  async function run(failures: readonly Error[]) {
    let calls = 0;
    let forgotten = 0;
    const service = { forgetAuthFailures: () => void forgotten++ };
    const call = async () => {
      const failure = failures[calls++];
      if (failure) throw failure;
    };
    const error = await retryWhileUnknown(service, KEY, new AbortController().signal, call).catch((thrown) => thrown);
    return { calls, forgotten, error };
  }

  test("is repeated after a 401, once that refusal of the key is forgotten", async () => {
    expect(await run([refusal(401)])).toEqual({ calls: 2, forgotten: 1, error: undefined });
  });

  test("fails after three 401s", async () => {
    expect(await run([refusal(401), refusal(401), refusal(401)])).toMatchObject({
      calls: 3,
      error: { code: "unauthorized" },
    });
  });

  test.each([refusal(403), new AppError("unavailable", "no answer"), new TypeError("no function")])(
    "is not repeated after another failure: %s",
    async (failure) => {
      expect(await run([failure])).toEqual({ calls: 1, forgotten: 0, error: failure });
    },
  );
});
