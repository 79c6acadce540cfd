import { expect, test } from "vitest";
import { breakdownQuery, fetchBreakdown } from "../../src/service/usage.ts";
import { ExactNumber } from "../../src/usage/json-value.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import type { Filter, Grouping } from "../../src/usage/series.ts";
import { answering } from "../support/scripted-server.ts";
import { sampleRequest, WINDOW } from "../usage/sample-request.ts";
import { KEY, limit, serve } from "./open-test-service.ts";

const DAYS = `start=${WINDOW.start}&end=${WINDOW.end}`;

function requestOf(grouping: Grouping, filter: Partial<Filter> = {}, window?: UsageRequest["window"]): UsageRequest {
  const { series } = sampleRequest(grouping);
  return { series: { ...series, filter: { ...series.filter, ...filter } }, window };
}

const CONDITIONS = { features: { diarize: "true", redact: "false" }, dimensions: { endpoint: "listen" } };
const CONDITIONS_QUERY = "grouping=accessor&diarize=true&redact=false&endpoint=listen";

test.each<[string, UsageRequest, string, string]>([
  ["the ungrouped total", requestOf("none", {}, WINDOW), DAYS, DAYS],
  ["no window", requestOf("none"), "", ""],
  ["a grouping without a window", requestOf("method"), "grouping=method", "grouping=method"],
  ["by model", requestOf("model"), "grouping=model", "grouping=models"],
  ["by tags", requestOf("tags"), "grouping=tags", "grouping=tags"],
  ["a tag as a filter", requestOf("none", { dimensions: { tags: "prod" } }), "tags=prod", "tag=prod"],
  ["a model as a filter", requestOf("none", { dimensions: { model: "m" } }), "model=m", "model=m"],
  ["conditions", requestOf("accessor", CONDITIONS), CONDITIONS_QUERY, CONDITIONS_QUERY],
  [
    "a value with a parameter in it",
    requestOf("none", { dimensions: { tags: "a&b=c" } }),
    "tags=a%26b%3Dc",
    "tag=a%26b%3Dc",
  ],
])("the query for %s", (_name, request, inInterface, in2026) => {
  expect(breakdownQuery(request, "interface").toString()).toBe(inInterface);
  expect(breakdownQuery(request, "2026").toString()).toBe(in2026);
});

test("fetchBreakdown returns the parsed answer with exact numbers", async () => {
  const body = '{"results":[{"requests":9007199254740993}]}';
  const script = answering(200, body, { "content-type": "application/json" });
  const { server, service } = await serve(script, { dialect: "2026" });
  expect(await fetchBreakdown(service, requestOf("model", {}, WINDOW), KEY, limit())).toStrictEqual({
    results: [{ requests: new ExactNumber("9007199254740993") }],
  });
  expect(server.requests[0]).toMatchObject({
    method: "GET",
    target: `/v1/projects/p1/usage/breakdown?${DAYS}&grouping=models`,
  });
});

test("the error of a refused breakdown names both scopes that the service may require", async () => {
  const { service } = await serve(answering(403, "Forbidden."));
  await expect(fetchBreakdown(service, requestOf("none"), KEY, limit())).rejects.toThrow("project:read or usage:read");
});

test("dimensions of billing are repeated, in one order, and filters have the names of the dialect", () => {
  const filter = { name: "f", features: {}, dimensions: { tags: "prod", line_item: "sync::aura-2" } };
  const request = requestOf("line_item,tags", filter, WINDOW);
  const billing = { ...request, series: { ...request.series, source: "billing" as const } };
  expect(decodeURIComponent(breakdownQuery(billing, "2026").toString())).toBe(
    `${DAYS}&grouping=line_item&grouping=tags&line_item=sync::aura-2&tag=prod`,
  );
  expect(breakdownQuery(billing, "interface").get("tags")).toBe("prod");
});
