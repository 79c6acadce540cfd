// A call with a key that the service may not know yet.

import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { retryWhileUnknown } from "../../src/jobs/key-checks.ts";
import { Secret } from "../../src/secret.ts";

const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");
const refusal = (status: number) =>
  new AppError("unauthorized", `the service answered ${status}`, { details: { status } });

/** Makes a call that fails with these errors, one at each attempt, and then succeeds. */
async function run(failures: readonly Error[]) {
  let calls = 0;
  let forgotten = 0;
  const service = { forgetRefusals: () => void forgotten++ };
  const call = async () => {
    const failure = failures[calls++];
    if (failure) throw failure;
  };
  const error = await retryWhileUnknown(service, KEY, new AbortController().signal, call).catch((thrown) => thrown);
  return { calls, forgotten, error };
}

test("a call that gets a 401 is repeated, once that refusal of the key is forgotten", async () => {
  expect(await run([refusal(401)])).toEqual({ calls: 2, forgotten: 1, error: undefined });
});

test("a call fails after three 401s", async () => {
  expect(await run([refusal(401), refusal(401), refusal(401)])).toMatchObject({
    calls: 3,
    error: { code: "unauthorized" },
  });
});

test.each([refusal(403), new AppError("unavailable", "no answer"), new TypeError("no function")])(
  "a call is not repeated after another failure: %s",
  async (failure) => {
    expect(await run([failure])).toEqual({ calls: 1, forgotten: 0, error: failure });
  },
);
