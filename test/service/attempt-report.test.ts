import { expect, test } from "vitest";
import type { AttemptReport } from "../../src/service/service.ts";
import { answerJson } from "../support/scripted-server.ts";
import { KEY, READ, serve } from "./open-test-service.ts";

test("every attempt of a call is reported, with its outcome", async () => {
  const reports: AttemptReport[] = [];
  const { read } = await serve(
    ({ number }, response) => answerJson(response, [503, 429][number - 1] ?? 200, {}),
    {},
    { onAttempt: (report) => void reports.push(report) },
  );
  await read();
  expect(reports.map(({ operation, result, number }) => [operation, result, number])).toEqual([
    ["breakdown", "unavailable", 1],
    ["breakdown", "rate_limited", 2],
    ["breakdown", "ok", 3],
  ]);
});

test("an attempt that the caller aborts is reported as stopped, not as a failure of the service", async () => {
  const reports: AttemptReport[] = [];
  const controller = new AbortController();
  const onAttempt = (report: AttemptReport) => void reports.push(report);
  const { service } = await serve(() => controller.abort(new Error("enough")), {}, { onAttempt });
  await expect(service.call(READ, KEY, controller.signal)).rejects.toThrow("enough");
  expect(reports).toMatchObject([{ operation: "breakdown", result: "stopped", number: 1 }]);
});
