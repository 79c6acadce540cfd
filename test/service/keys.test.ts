import { expect, test } from "vitest";
import { deleteKey, fetchToken, listKeys } from "../../src/service/keys.ts";
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

test("fetchToken returns the id and scopes of the calling key", async () => {
  const { result, asked } = await serve(json(200, SENT), (service) => fetchToken(service, KEY, limit()));
  expect(result).toEqual({ apiKeyId: "k1", scopes: ["member"] });
  expect(asked).toEqual(["GET /v1/auth/token"]);
});

test("fetchToken returns undefined if the service does not describe the calling key", async () => {
  const { result } = await serve(json(404, {}), (service) => fetchToken(service, KEY, limit()));
  expect(result).toBeUndefined();
});

test("a listed key may lack its comment, scopes and creation time", async () => {
  const body = { api_keys: [{ member: { member_id: "m" }, api_key: SENT }, { api_key: { api_key_id: "k2" } }] };
  const { result, asked } = await serve(json(200, body), (service) => listKeys(service, "p1", KEY, limit()));
  expect(result).toEqual([READ, { apiKeyId: "k2", comment: "", scopes: [], created: undefined }]);
  expect(asked).toEqual(["GET /v1/projects/p1/keys"]);
});

test.each([403, 404])("listKeys returns undefined after a %i", async (status) => {
  const { result } = await serve(json(status, {}), (service) => listKeys(service, "p1", KEY, limit()));
  expect(result).toBeUndefined();
});

test.each<[string, Script, boolean]>([
  ["a message", json(200, { message: "Successfully deleted the API key!" }), true],
  ["a 204", (_request, response) => answer(response, 204, ""), true],
  ["a 404", json(404, {}), false],
])("deleteKey succeeds if the answer is %s", async (_name, script, expected) => {
  const { result, asked } = await serve(script, (service) => deleteKey(service, "p1", "k1", KEY, limit()));
  expect(result).toBe(expected);
  expect(asked).toEqual(["DELETE /v1/projects/p1/keys/k1"]);
});

test("a deletion whose answer was lost is sent again, and finds the key gone", async () => {
  const script: Script = ({ number }, response) => {
    if (number === 1) response.destroy();
    else answerJson(response, 404, {});
  };
  const { result } = await serve(script, (service) => deleteKey(service, "p1", "k1", KEY, limit()));
  expect(result).toBe(false);
});

test.each(["..", "k1/..", "", "k1?x=1"])("the key id %j is refused before anything is sent", async (id) => {
  await using server = await scriptedServer(json(200, {}));
  await using service = openTestService(server.origin);
  await expect(deleteKey(service, "p1", id, KEY, limit())).rejects.toMatchObject({ code: "config" });
  expect(server.connections()).toBe(0);
});

test.each([
  ["a list that is not an array", { api_keys: {} }, "api_keys: "],
  [
    "a key without an id",
    { api_keys: [{ api_key: SENT }, { api_key: { comment: "x" } }] },
    "api_keys.1.api_key.api_key_id: ",
  ],
  ["an id that is a path", { api_keys: [{ api_key: { api_key_id: "../p2" } }] }, "api_keys.0.api_key.api_key_id: "],
  ["text", "keys", "the answer: "],
])("the error for %s has the path of the wrong value and not the value", async (_name, body, path) => {
  await using server = await scriptedServer(json(200, body));
  await using service = openTestService(server.origin);
  const error = await listKeys(service, "p1", KEY, limit()).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: "bad_answer", message: expect.stringContaining(path) });
  expect(String(error)).not.toContain("p2");
});
