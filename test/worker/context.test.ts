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

/** Opens what the database has given this answer for once. */
async function openedAfter(code: string): Promise<number> {
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
  "a database that answers %s as the worker starts is asked again",
  async (code) => {
    expect(await openedAfter(code)).toBe(2);
  },
);

test("a database that refuses as the worker starts ends it", async () => {
  await expect(openedAfter("28P01")).rejects.toThrow("a fault of the test");
});
