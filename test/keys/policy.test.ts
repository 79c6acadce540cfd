import { expect, test } from "vitest";
import { commentOf, sinkId } from "../../src/keys/policy.ts";
import { COMMAND, JOB } from "./sample-ledger.ts";

test.each([
  ["{comment} [{id}]", "usage exporter", "usage exporter [ue-1]"],
  ["{comment}", "usage exporter", "usage exporter"],
  ["{id}: {comment} ({id})", "usage exporter", "ue-1: usage exporter (ue-1)"],
  ["{comment} [{id}]", "costs $& and $1", "costs $& and $1 [ue-1]"],
  ["{comment} [{id}]", "an {id} of its own", "an {id} of its own [ue-1]"],
])("the template %j with the comment %j is %j", (commentTemplate, comment, expected) => {
  expect(commentOf({ ...JOB, commentTemplate, comment }, "ue-1")).toBe(expected);
});

test("the id of a sink does not depend on its time limit", () => {
  expect(sinkId({ ...COMMAND, timeoutSeconds: 5 })).toBe(sinkId(COMMAND));
});
