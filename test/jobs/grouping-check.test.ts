import { expect, test, vi } from "vitest";
import { openGroupingCheck } from "../../src/jobs/dialects.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import type { Grouping } from "../../src/usage/series.ts";
import { sampleAnswer, sampleRequest, sampleRow } from "../usage/sample-request.ts";

const BY_TAGS = sampleRequest("tags");
const NO_TAGS = sampleAnswer([sampleRow("2026-03-17", { tags: null })]);

/** Answers the check's own requests: with a value in the dimensions that the service groups by, and null in the others. */
function service(...grouped: readonly Grouping[]) {
  return vi.fn(async ({ series: { grouping } }: UsageRequest) =>
    sampleAnswer([sampleRow("2026-03-17", { [grouping]: grouped.includes(grouping) ? "value" : null })]),
  );
}

test("an answer with a value, without rows or without a grouping needs no further request", async () => {
  const ask = service();
  await openGroupingCheck().require(BY_TAGS, sampleAnswer([sampleRow("2026-03-17", { tags: ["a"] })]), ask);
  await openGroupingCheck().require(BY_TAGS, sampleAnswer([]), ask);
  await openGroupingCheck().require(sampleRequest("none"), NO_TAGS, ask);
  expect(ask).not.toHaveBeenCalled();
});

test("an answer without any value is believed if an answer by another dimension has one", async () => {
  const ask = service("method");
  await openGroupingCheck().require(BY_TAGS, NO_TAGS, ask);
  expect(ask.mock.calls.map(([{ series }]) => series.grouping)).toEqual(["endpoint", "method"]);
});

test("an answer without any value is refused if answers by other dimensions have none, and the error names these dimensions", async () => {
  const refused = openGroupingCheck().require(BY_TAGS, NO_TAGS, service());
  await expect(refused).rejects.toMatchObject({
    code: "bad_answer",
    message: expect.stringContaining('no row has a value of "tags", and none has one by endpoint or method either'),
  });
});

test("the result holds for all requests of the project, and a check that failed is repeated", async () => {
  const { require } = openGroupingCheck();
  await expect(require(BY_TAGS, NO_TAGS, () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  const ask = service("endpoint");
  await require(BY_TAGS, NO_TAGS, ask);
  await require(sampleRequest("accessor"), sampleAnswer([sampleRow("2026-03-17", { accessor: null })]), ask);
  expect(ask).toHaveBeenCalledTimes(1);
});
