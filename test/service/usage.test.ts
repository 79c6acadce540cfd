import { expect, test } from "vitest";
import { breakdownQuery, fetchBreakdown } from "../../src/service/usage.ts";
import { ExactNumber } from "../../src/usage/json-value.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import type { Filter, Grouping } from "../../src/usage/series.ts";
import { answer, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

const WINDOW = { start: "2026-03-01", end: "2026-03-07" };

function requestOf(grouping: Grouping, filter: Partial<Filter> = {}, window?: UsageRequest["window"]): UsageRequest {
  const series = {
    project: { id: "p1", name: "production" },
    source: "usage" as const,
    grouping,
    filter: { name: "all", features: {}, dimensions: {}, ...filter },
  };
  return { series, window };
}

test.each<[string, UsageRequest, string, string]>([
  [
    "the ungrouped total",
    requestOf("none", {}, WINDOW),
    "start=2026-03-01&end=2026-03-07",
    "start=2026-03-01&end=2026-03-07",
  ],
  ["no window", requestOf("none"), "", ""],
  ["a grouping without a window", requestOf("method"), "grouping=method", "grouping=method"],
  ["by model", requestOf("model"), "grouping=model", "grouping=models"],
  ["by tags", requestOf("tags"), "grouping=tags", "grouping=tags"],
  ["a tag as a filter", requestOf("none", { dimensions: { tags: "prod" } }), "tags=prod", "tag=prod"],
  ["a model as a filter", requestOf("none", { dimensions: { model: "m" } }), "model=m", "model=m"],
  [
    "features as text, and dimensions",
    requestOf("accessor", { features: { diarize: "true", redact: "false" }, dimensions: { endpoint: "listen" } }),
    "grouping=accessor&diarize=true&redact=false&endpoint=listen",
    "grouping=accessor&diarize=true&redact=false&endpoint=listen",
  ],
  [
    "a value that looks like another parameter",
    requestOf("none", { dimensions: { tags: "a&grouping=model" } }),
    "tags=a%26grouping%3Dmodel",
    "tag=a%26grouping%3Dmodel",
  ],
])("the query for %s", (_name, request, inInterface, in2026) => {
  expect(breakdownQuery(request, "interface").toString()).toBe(inInterface);
  expect(breakdownQuery(request, "2026").toString()).toBe(in2026);
});

test("fetchBreakdown returns the parsed answer with exact numbers", async () => {
  await using server = await scriptedServer((_request, response) =>
    answer(response, 200, '{"results":[{"requests":9007199254740993}]}', { "content-type": "application/json" }),
  );
  await using service = openTestService(server.origin, { dialect: "2026" });
  expect(await fetchBreakdown(service, requestOf("model", {}, WINDOW), KEY, limit())).toStrictEqual({
    results: [{ requests: new ExactNumber("9007199254740993") }],
  });
  expect(server.requests[0]).toMatchObject({
    method: "GET",
    target: "/v1/projects/p1/usage/breakdown?start=2026-03-01&end=2026-03-07&grouping=models",
  });
});

test("the error of a refused breakdown names both scopes that the service may require", async () => {
  await using server = await scriptedServer((_request, response) => answer(response, 403, "Forbidden."));
  await using service = openTestService(server.origin);
  await expect(fetchBreakdown(service, requestOf("none"), KEY, limit())).rejects.toThrow("project:read or usage:read");
});

test("dimensions of billing are repeated, in one order, and filters have the names of the dialect", () => {
  const filter = { name: "f", features: {}, dimensions: { tags: "prod", line_item: "sync::aura-2" } };
  const request = requestOf("line_item,tags", filter, WINDOW);
  const billing = { ...request, series: { ...request.series, source: "billing" as const } };
  expect(decodeURIComponent(breakdownQuery(billing, "2026").toString())).toBe(
    "start=2026-03-01&end=2026-03-07&grouping=line_item&grouping=tags&line_item=sync::aura-2&tag=prod",
  );
  expect(breakdownQuery(billing, "interface").get("tags")).toBe("prod");
});
