import { expect, test } from "vitest";
import type { AttemptReport, ServiceCall } from "../../src/service/service.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

const READ: ServiceCall = { operation: "breakdown", method: "GET", path: ["v1", "projects", "p1"], retry: true };

function collect(): { readonly reports: AttemptReport[]; readonly onAttempt: (report: AttemptReport) => void } {
  const reports: AttemptReport[] = [];
  return { reports, onAttempt: (report) => void reports.push(report) };
}

test("every attempt of a call is reported, with its outcome", async () => {
  const { reports, onAttempt } = collect();
  await using server = await scriptedServer(({ number }, response) => {
    if (number === 1) answer(response, 503, "");
    else if (number === 2) answer(response, 429, "");
    else answerJson(response, 200, {});
  });
  await using service = openTestService(server.origin, {}, { onAttempt });
  await service.call(READ, KEY, limit());
  expect(reports.map(({ operation, result, number }) => [operation, result, number])).toEqual([
    ["breakdown", "unavailable", 1],
    ["breakdown", "rate_limited", 2],
    ["breakdown", "ok", 3],
  ]);
});

test("an attempt that the caller aborts is reported as stopped, not as a failure of the service", async () => {
  const { reports, onAttempt } = collect();
  const controller = new AbortController();
  await using server = await scriptedServer(() => controller.abort(new Error("enough")));
  await using service = openTestService(server.origin, {}, { onAttempt });
  await expect(service.call(READ, KEY, controller.signal)).rejects.toThrow("enough");
  expect(reports).toMatchObject([{ operation: "breakdown", result: "stopped", number: 1 }]);
});
