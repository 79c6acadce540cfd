import { expect, test } from "vitest";
import { sinkId } from "../../src/keys/plan.ts";
import { COMMAND, FILE } from "./sample-ledger.ts";

test("sinks with another file or another command have other ids", () => {
  const sinks = [FILE, { file: "/run/other.key" }, COMMAND, { ...COMMAND, command: ["store-key", "other"] }];
  expect(new Set(sinks.map(sinkId)).size).toBe(sinks.length);
});

test("the id of a sink does not depend on its time limit", () => {
  expect(sinkId({ ...COMMAND, timeoutSeconds: 5 })).toBe(sinkId(COMMAND));
});
