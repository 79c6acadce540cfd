import { expect, test } from "vitest";
import { retryUntilReached } from "../../src/worker/context.ts";
import { openLiveness } from "../../src/worker/liveness.ts";
import { silentApp } from "../support/silent-app.ts";

const app = silentApp({ env: { DATABASE_URL: "postgres://127.0.0.1/usage" } });

/** Returns after how many attempts opening succeeded, if the database answers the first one with this error code. */
async function attemptsAfter(code: string): Promise<number> {
  let attempts = 0;
  const liveness = openLiveness(app.log, () => 0);
  return retryUntilReached(app, liveness, async () => {
    attempts++;
    if (attempts === 1) throw Object.assign(new Error("a fault of the test"), { code });
    return attempts;
  });
}

test("if the database can't be reached while the worker starts, the worker tries again", async () => {
  expect(await attemptsAfter("ECONNREFUSED")).toBe(2);
});

test("if the database refuses access while the worker starts, the worker does not try again", async () => {
  await expect(attemptsAfter("28P01")).rejects.toThrow("a fault of the test");
});
