import { expect, test } from "vitest";
import { deleteKey, fetchKey, fetchProjects, fetchToken, listKeys } from "../../src/service/keys.ts";
import { answer, answerJson, type Script, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService, type TestService } from "./open-test-service.ts";

const SENT = {
  api_key_id: "k1",
  comment: "usage exporter",
  scopes: ["member"],
  created: "2026-03-01T00:00:00.000000Z",
};
const READ = { apiKeyId: "k1", comment: "usage exporter", scopes: ["member"], created: "2026-03-01T00:00:00.000000Z" };

async function serve<T>(
  script: Script,
  run: (service: TestService) => Promise<T>,
): Promise<{ result: T; asked: string[] }> {
  await using server = await scriptedServer(script);
  await using service = openTestService(server.origin);
  const result = await run(service);
  return { result, asked: server.requests.map(({ method, target }) => `${method} ${target}`) };
}

const json =
  (status: number, body: unknown): Script =>
  (_request, response) =>
    answerJson(response, status, body);

test("a key learns what it is", async () => {
  const { result, asked } = await serve(json(200, SENT), (service) => fetchToken(service, KEY, limit()));
  expect(result).toEqual({ apiKeyId: "k1", scopes: ["member"], created: SENT.created });
  expect(asked).toEqual(["GET /v1/auth/token"]);
});

test("a service that does not tell a key what it is, is no failure", async () => {
  const { result } = await serve(json(404, {}), (service) => fetchToken(service, KEY, limit()));
  expect(result).toBeUndefined();
});

test("projects without a name go by their id", async () => {
  const body = { projects: [{ project_id: "p1", name: "production" }, { project_id: "p2" }] };
  const { result, asked } = await serve(json(200, body), (service) => fetchProjects(service, KEY, limit()));
  expect(result).toEqual([
    { id: "p1", name: "production" },
    { id: "p2", name: "p2" },
  ]);
  expect(asked).toEqual(["GET /v1/projects"]);
});

test("keys are listed, with what may be missing", async () => {
  const body = { api_keys: [{ member: { member_id: "m" }, api_key: SENT }, { api_key: { api_key_id: "k2" } }] };
  const { result, asked } = await serve(json(200, body), (service) => listKeys(service, "p1", KEY, limit()));
  expect(result).toEqual([READ, { apiKeyId: "k2", comment: "", scopes: [], created: undefined }]);
  expect(asked).toEqual(["GET /v1/projects/p1/keys"]);
});

test.each([403, 404])("a list that is answered %i is not shown, which is no failure", async (status) => {
  const { result } = await serve(json(status, {}), (service) => listKeys(service, "p1", KEY, limit()));
  expect(result).toBeUndefined();
});

test.each([
  ["api_key", { member: {}, api_key: SENT }],
  ["item", { item: { member: { member_id: "m", api_key: SENT } } }],
])("one key is read out of %s", async (_name, body) => {
  const { result, asked } = await serve(json(200, body), (service) => fetchKey(service, "p1", "k1", KEY, limit()));
  expect(result).toEqual(READ);
  expect(asked).toEqual(["GET /v1/projects/p1/keys/k1"]);
});

test("a key that is not there is undefined", async () => {
  const { result } = await serve(json(404, {}), (service) => fetchKey(service, "p1", "k1", KEY, limit()));
  expect(result).toBeUndefined();
});

test.each<[string, Script, string]>([
  ["a message", json(200, { message: "Successfully deleted the API key!" }), "deleted"],
  ["nothing", (_request, response) => answer(response, 204, ""), "deleted"],
  ["that it is not there", json(404, {}), "absent"],
])("deleting a key is done when the answer is %s", async (_name, script, expected) => {
  const { result, asked } = await serve(script, (service) => deleteKey(service, "p1", "k1", KEY, limit()));
  expect(result).toBe(expected);
  expect(asked).toEqual(["DELETE /v1/projects/p1/keys/k1"]);
});

test("deleting a key whose answer was lost is done again, and finds it gone", async () => {
  const script: Script = ({ number }, response) => {
    if (number === 1) response.destroy();
    else answerJson(response, 404, {});
  };
  const { result } = await serve(script, (service) => deleteKey(service, "p1", "k1", KEY, limit()));
  expect(result).toBe("absent");
});

test.each(["..", "k1/..", "", "k1?x=1"])("the key id %j can not lead anywhere else", async (id) => {
  await using server = await scriptedServer(json(200, {}));
  await using service = openTestService(server.origin);
  await expect(deleteKey(service, "p1", id, KEY, limit())).rejects.toMatchObject({ code: "config" });
  await expect(fetchKey(service, "p1", id, KEY, limit())).rejects.toMatchObject({ code: "config" });
  expect(server.connections()).toBe(0);
});

test.each([
  ["a list that is none", { api_keys: {} }, "api_keys: "],
  [
    "a key without an id",
    { api_keys: [{ api_key: SENT }, { api_key: { comment: "x" } }] },
    "api_keys.1.api_key.api_key_id: ",
  ],
  [
    "an id that leads elsewhere",
    { api_keys: [{ api_key: { api_key_id: "../p2" } }] },
    "api_keys.0.api_key.api_key_id: ",
  ],
  ["text", "keys", "the answer: "],
])("%s is a bad answer whose error has the path and not the value", async (_name, body, place) => {
  await using server = await scriptedServer(json(200, body));
  await using service = openTestService(server.origin);
  const error = await listKeys(service, "p1", KEY, limit()).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "bad_answer", message: expect.stringContaining(place) });
  expect(String(error)).not.toContain("p2");
});
