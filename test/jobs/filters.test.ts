import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { FilterCheck, type FilterCheckDeps } from "../../src/jobs/filters.ts";
import { KEY, limit, openTestService } from "../service/open-test-service.ts";
import { answerJson, scriptedServer } from "../support/scripted-server.ts";
import { ALL_USAGE, PROJECT, WINDOW } from "../usage/sample-request.ts";

const REQUEST = {
  series: {
    project: PROJECT,
    source: "usage",
    grouping: "none",
    filter: { ...ALL_USAGE, name: "new", features: { brand_new: "true" } },
  },
  window: WINDOW,
} as const;

test("the next request of a run repeats a Get Fields call that failed, and not one that was answered", async () => {
  let isUnavailable = true;
  await using server = await scriptedServer((_request, response) =>
    isUnavailable ? answerJson(response, 503, {}) : answerJson(response, 200, { features: ["brand_new"] }),
  );
  await using service = openTestService(server.origin);
  const app = { log: pino({ level: "silent" }), signal: limit() } as App;
  const check = new FilterCheck({
    app,
    service,
    keys: { use: (_: unknown, call: (key: typeof KEY) => unknown) => call(KEY) },
  } as unknown as FilterCheckDeps);

  const together = [check.unknownNames(REQUEST.series), check.unknownNames(REQUEST.series)];
  expect((await Promise.allSettled(together)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(server.requests).toHaveLength(5);

  isUnavailable = false;
  expect(await check.unknownNames(REQUEST.series)).toEqual([]);
  expect(await check.unknownNames(REQUEST.series)).toEqual([]);
  expect(server.requests).toHaveLength(6);
});
