import { expect, test } from "vitest";
import { openApp } from "../src/app.ts";

test.each(["DATABASE_URL", "MIGRATION_DATABASE_URL"])(
  "the password in %s is hidden, encoded and decoded",
  async (name) => {
    const url = "postgres://usage:pass%2Fword%20of%20mine@127.0.0.1/usage";
    const { scrubber } = await openApp({ [name]: url }, "jobs.config.json", new AbortController().signal);
    for (const form of [url, "pass/word of mine", "pass%2Fword%20of%20mine"]) {
      expect(scrubber.scrub(`refused ${form} here`)).toBe("refused [secret] here");
    }
  },
);
