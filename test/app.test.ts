import { expect, test } from "vitest";
import { openApp } from "../src/app.ts";

test("the password in DATABASE_URL is hidden, encoded and decoded", async () => {
  const url = "postgres://usage:pass%2Fword%20of%20mine@127.0.0.1/usage";
  const { scrubber } = await openApp({ DATABASE_URL: url }, "jobs.config.json", new AbortController().signal);
  for (const form of [url, "pass/word of mine", "pass%2Fword%20of%20mine"]) {
    expect(scrubber.scrub(`refused ${form} here`)).toBe("refused [secret] here");
  }
});
