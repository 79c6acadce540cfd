import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { Scrubber } from "../../src/secret.ts";
import { retryUntilReached } from "../../src/worker/context.ts";
import { openLiveness } from "../../src/worker/liveness.ts";

const NEVER = new AbortController().signal;
const log = pino({ level: "silent" });
const app: App = {
  env: { DATABASE_URL: "postgres://127.0.0.1/usage" },
  configPath: "jobs.config.json",
  signal: NEVER,
  scrubber: new Scrubber(),
  log,
  person: "the test",
  actor: "the test",
  write: () => {},
  terminal: false,
};

/** Returns after how many attempts opening succeeded, if the database answers the first one with this error code. */
async function attemptsAfter(code: string): Promise<number> {
  let attempts = 0;
  return retryUntilReached(
    app,
    openLiveness(log, () => 0),
    NEVER,
    async () => {
      attempts++;
      if (attempts === 1) throw Object.assign(new Error("a fault of the test"), { code });
      return attempts;
    },
  );
}

test.concurrent.each(["ECONNREFUSED", "57P03", "40P01", "57014", "25006"])(
  "if the database answers %s while the worker starts, the worker tries again",
  async (code) => {
    expect(await attemptsAfter(code)).toBe(2);
  },
);

test("if the database refuses access while the worker starts, the worker does not try again", async () => {
  await expect(attemptsAfter("28P01")).rejects.toThrow("a fault of the test");
});
