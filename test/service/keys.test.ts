// Calls about keys, and the queries of breakdowns.

import { expect, test } from "vitest";
import { ExactNumber } from "../../src/decimal.ts";
import { breakdownQuery, fetchBreakdown } from "../../src/service/breakdown.ts";
import { deleteKey, fetchKeyInfo, listKeys } from "../../src/service/keys.ts";
import type { UsageRequest } from "../../src/usage/export-plan.ts";
import type { Filter, Grouping } from "../../src/usage/series.ts";
import { answering, answeringJson, answerJson, type Script } from "../support/scripted-server.ts";
import { sampleRequest, WINDOW } from "../usage/sample-request.ts";
import { hangSignal, KEY, serve } from "./open-test-service.ts";

const CREATED = "2026-03-01T00:00:00.000000Z";
const SENT_KEY = { api_key_id: "k1", comment: "usage exporter", scopes: ["member"], created: CREATED };
const LISTED_KEY = { apiKeyId: "k1", comment: "usage exporter", scopes: ["member"], created: CREATED };

async function open(script: Script) {
  const { server, service } = await serve(script);
  return {
    token: () => fetchKeyInfo(service, KEY, hangSignal()),
    list: () => listKeys(service, "p1", KEY, hangSignal()),
    remove: (id = "k1") => deleteKey(service, "p1", id, KEY, hangSignal()),
    asked: () => server.requests.map(({ method, target }) => `${method} ${target}`),
  };
}

test("fetchKeyInfo returns the id and scopes of the calling key", async () => {
  const { token, asked } = await open(answeringJson(200, SENT_KEY));
  expect(await token()).toEqual({ apiKeyId: "k1", scopes: ["member"] });
  expect(asked()).toEqual(["GET /v1/auth/token"]);
});

test("fetchKeyInfo returns undefined if the service does not describe the calling key", async () => {
  expect(await (await open(answeringJson(404))).token()).toBeUndefined();
});

test("a listed key may lack its comment, scopes and creation time", async () => {
  const body = { api_keys: [{ member: { member_id: "m" }, api_key: SENT_KEY }, { api_key: { api_key_id: "k2" } }] };
  const { list, asked } = await open(answeringJson(200, body));
  expect(await list()).toEqual([LISTED_KEY, { apiKeyId: "k2", comment: "", scopes: [], created: undefined }]);
  expect(asked()).toEqual(["GET /v1/projects/p1/keys"]);
});

test.each([403, 404])("listKeys returns undefined after a %i", async (status) => {
  expect(await (await open(answeringJson(status))).list()).toBeUndefined();
});

test.each<[string, boolean, Script]>([
  ["a message", true, answeringJson(200, { message: "Successfully deleted the API key!" })],
  ["a 204", true, answering(204)],
  ["a 404", false, answeringJson(404)],
])("if the answer is %s, deleteKey returns %s", async (_name, expected, script) => {
  const { remove, asked } = await open(script);
  expect(await remove()).toBe(expected);
  expect(asked()).toEqual(["DELETE /v1/projects/p1/keys/k1"]);
});

test("a deletion whose answer was lost is sent again", async () => {
  const { remove } = await open(({ number }, response) => {
    if (number === 1) response.destroy();
    else answerJson(response, 404, {});
  });
  expect(await remove()).toBe(false);
});

const idPathOf = (i: number) => `api_keys.${i}.api_key.api_key_id: `;

test.each([
  ["a list that is not an array", { api_keys: {} }, "api_keys: "],
  ["a key without an id", { api_keys: [{ api_key: SENT_KEY }, { api_key: { comment: "x" } }] }, idPathOf(1)],
  ["an id that is a path", { api_keys: [{ api_key: { api_key_id: "../p2" } }] }, idPathOf(0)],
  ["text", "keys", "the answer: "],
])("the error for %s has the path of the wrong value and not the value", async (_name, body, path) => {
  const { list } = await open(answeringJson(200, body));
  const error = await list().catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "bad_answer", message: expect.stringContaining(path) });
  expect(String(error)).not.toContain("p2");
});

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
    "a value that must be escaped",
    requestOf("none", { dimensions: { tags: "a&b=c" } }),
    "tags=a%26b%3Dc",
    "tag=a%26b%3Dc",
  ],
])("the query for %s has the names of its dialect", (_name, request, inInterface, in2026) => {
  expect(breakdownQuery(request, "interface").toString()).toBe(inInterface);
  expect(breakdownQuery(request, "2026").toString()).toBe(in2026);
});

test("fetchBreakdown returns the parsed answer with exact numbers", async () => {
  const body = '{"results":[{"requests":9007199254740993}]}';
  const script = answering(200, body, { "content-type": "application/json" });
  const { server, service } = await serve(script, { dialect: "2026" });
  expect(await fetchBreakdown(service, requestOf("model", {}, WINDOW), KEY, hangSignal())).toStrictEqual({
    results: [{ requests: new ExactNumber("9007199254740993") }],
  });
  const target = `/v1/projects/p1/usage/breakdown?${DAYS}&grouping=models`;
  expect(server.requests[0]).toMatchObject({ method: "GET", target });
});

test("the error of a refused breakdown names both scopes that the service may require", async () => {
  const { service } = await serve(answering(403, "Forbidden."));
  await expect(fetchBreakdown(service, requestOf("none"), KEY, hangSignal())).rejects.toThrow(
    "project:read or usage:read",
  );
});

test("a query for billing has a parameter for each dimension of its grouping and of its filter", () => {
  const filter = { name: "f", features: {}, dimensions: { tags: "prod", line_item: "sync::aura-2" } };
  const request = requestOf("line_item,tags", filter, WINDOW);
  const billing = { ...request, series: { ...request.series, source: "billing" as const } };
  expect(decodeURIComponent(breakdownQuery(billing, "2026").toString())).toBe(
    `${DAYS}&grouping=line_item&grouping=tags&line_item=sync::aura-2&tag=prod`,
  );
  expect(breakdownQuery(billing, "interface").get("tags")).toBe("prod");
});
