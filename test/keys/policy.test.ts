import { expect, test } from "vitest";
import { sinkId } from "../../src/keys/policy.ts";
import { COMMAND } from "./sample-ledger.ts";

test("the id of a sink does not depend on its time limit", () => {
  expect(sinkId({ ...COMMAND, timeoutSeconds: 5 })).toBe(sinkId(COMMAND));
});
