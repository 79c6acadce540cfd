// A create is sent once under every fault, and its failure says whether a key may have been made.

import { expect, test } from "vitest";
import { AppError } from "../../src/errors.ts";
import { createKey, type KeyRequest } from "../../src/service/keys.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findSecrets } from "../support/leak-search.ts";
import { answer, answerJson, rawServer, type Script, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

const NEW_KEY_TEXT = "createdCANARYq7w5e3r1t9";
const REQUEST: KeyRequest = { comment: "usage exporter", scopes: ["member"], tags: ["usage-exporter"] };
const CREATED = {
  api_key_id: "k2",
  key: NEW_KEY_TEXT,
  comment: "usage exporter",
  scopes: ["keys:read", "member"],
  tags: ["usage-exporter"],
  created: "2026-03-01T00:00:00.000000Z",
};

test.each([200, 201])("the key in a %i answer is returned, its text in a Secret", async (status) => {
  await using server = await scriptedServer((_request, response) => answerJson(response, status, CREATED));
  await using service = openTestService(server.origin);
  const { key, ...created } = await createKey(service, "p1", REQUEST, KEY, limit());
  expect(key.reveal()).toBe(NEW_KEY_TEXT);
  expect(created).toEqual({
    apiKeyId: "k2",
    scopes: ["keys:read", "member"],
    created: new Date("2026-03-01T00:00:00.000Z"),
  });
  expect(server.requests[0]).toMatchObject({ method: "POST", target: "/v1/projects/p1/keys" });
});

test.each<[string, KeyRequest, object]>([
  ["tags", REQUEST, { comment: "usage exporter", scopes: ["member"], tags: ["usage-exporter"] }],
  ["no tags", { ...REQUEST, tags: [] }, { comment: "usage exporter", scopes: ["member"] }],
  [
    "an expiry",
    { ...REQUEST, tags: [], expiresInSeconds: 3600 },
    { comment: "usage exporter", scopes: ["member"], time_to_live_in_seconds: 3600 },
  ],
])("a key with %s is requested", async (_name, request, body) => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, CREATED));
  await using service = openTestService(server.origin);
  await createKey(service, "p1", request, KEY, limit());
  expect(JSON.parse(server.requests[0]?.body ?? "")).toEqual(body);
  expect(server.requests[0]?.headers["content-type"]).toBe("application/json");
});

test.each([{}, null, "", "yesterday"])("unreadable fields, such as created %j, do not lose the key", async (time) => {
  const odd = { api_key_id: "k2", key: NEW_KEY_TEXT, comment: 7, scopes: null, tags: null, created: time };
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, odd));
  await using service = openTestService(server.origin);
  const { apiKeyId, key, scopes, created } = await createKey(service, "p1", REQUEST, KEY, limit());
  expect([apiKeyId, key.reveal(), scopes, created]).toEqual(["k2", NEW_KEY_TEXT, [], undefined]);
});

async function failureOf(
  script: Script,
  timeoutSeconds = 20,
): Promise<{ error: unknown; sent: number; lines: readonly string[] }> {
  await using server = await scriptedServer(script);
  await using service = openTestService(server.origin, { timeoutSeconds });
  const error = await createKey(service, "p1", REQUEST, KEY, limit()).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(AppError);
  return { error, sent: server.requests.length, lines: service.lines };
}

test.each([400, 401, 403, 404, 409, 422, 429])(
  "after a %i the error says that no key was created, and nothing is sent again",
  async (status) => {
    const { error, sent } = await failureOf((_request, response) => answerJson(response, status, {}));
    expect(error).toMatchObject({ details: { status, created: "no" } });
    expect(sent).toBe(1);
  },
);

const ok =
  (body: unknown): Script =>
  (_request, response) =>
    answerJson(response, 200, body);
const HUGE = "x".repeat(1_001);

test.each<[string, Script]>([
  ["a 500", (_request, response) => answerJson(response, 500, {})],
  ["a 502 of a gateway", (_request, response) => answer(response, 502, "<html></html>")],
  ["a 503 that asks to wait", (_request, response) => answer(response, 503, "", { "retry-after": "1" })],
  ["a 503 that asks for an hour", (_request, response) => answer(response, 503, "", { "retry-after": "3600" })],
  ["a 408", (_request, response) => answer(response, 408, "")],
  ["a redirect", (_request, response) => answer(response, 307, "", { location: "/elsewhere" })],
  ["no answer at all", () => undefined],
  ["a lost connection", (_request, response) => response.destroy()],
  [
    "an answer that is cut",
    (_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
      response.write(JSON.stringify(CREATED), () => response.destroy());
    },
  ],
  ["a success without a body", (_request, response) => answer(response, 204, "")],
  ["a success in HTML", (_request, response) => answer(response, 200, "<p>", { "content-type": "text/html" })],
  ["an answer without a key", ok({ ...CREATED, key: undefined })],
  ["an answer with a huge key", ok({ ...CREATED, key: HUGE })],
  ["an answer with a key of two lines", ok({ ...CREATED, key: `${NEW_KEY_TEXT}\r\nx: y` })],
  ["an answer with a number as the key", ok({ ...CREATED, key: 7 })],
  ["an answer without an id", ok({ ...CREATED, api_key_id: undefined })],
  ["an answer with a path as the id", ok({ ...CREATED, api_key_id: "../k1" })],
])("after %s a key may have been made, and nothing is sent again", async (_name, script) => {
  const { error, sent, lines } = await failureOf(script, 0.2);
  expect(error).toMatchObject({ details: { created: "unknown" } });
  expect(sent).toBe(1);
  expect(`${JSON.stringify(error)}${error}${lines}`).not.toContain("CANARY");
});

const QUOTED = Object.entries(ENCODINGS).flatMap(([name, encode]) =>
  [200, 400, 502].map((status) => [status, name, encode] as const),
);

test.each(QUOTED)("nothing is quoted of a %i that holds the new key, %s", async (status, _name, encode) => {
  const said = `made ${encode(NEW_KEY_TEXT)}`;
  const body = { error: said, err_code: said, message: said, details: said, request_id: said, api_key_id: said };
  const { error, lines } = await failureOf((_request, response) =>
    answerJson(response, status, body, { "dg-request-id": said.replaceAll(/[^\x20-\x7e]/g, "") }),
  );
  const shown = `${JSON.stringify(error)}${error}${lines}`;
  expect(shown).not.toContain("made");
  expect(findSecrets(shown, [NEW_KEY_TEXT])).toEqual([]);
});

test("scopes that contain the new key are dropped, and an id that contains it is a bad answer", async () => {
  const body = { ...CREATED, scopes: ["member", Buffer.from(NEW_KEY_TEXT).toString("hex")] };
  await using server = await scriptedServer(({ number }, response) =>
    answerJson(response, 200, number === 1 ? body : { ...CREATED, api_key_id: `id-${NEW_KEY_TEXT}` }),
  );
  await using service = openTestService(server.origin);
  const create = () => createKey(service, "p1", REQUEST, KEY, limit());
  expect(await create()).toMatchObject({ scopes: ["member"] });
  await expect(create()).rejects.toMatchObject({ code: "bad_answer", details: { created: "unknown" } });
});

test("after a refused connection the error says that no key was created", async () => {
  const server = await rawServer(() => undefined);
  await server[Symbol.asyncDispose]();
  await using service = openTestService(server.origin);
  await expect(createKey(service, "p1", REQUEST, KEY, limit())).rejects.toMatchObject({
    code: "unavailable",
    details: { created: "no" },
  });
  expect(service.sleeps).toEqual([]);
});

test("after a 429, and during the pause that it asks for, the error says that no key was created", async () => {
  await using server = await scriptedServer((_request, response) =>
    answer(response, 429, "", { "retry-after": "3600" }),
  );
  await using service = openTestService(server.origin);
  await expect(createKey(service, "p1", REQUEST, KEY, limit())).rejects.toMatchObject({ details: { created: "no" } });
  await expect(createKey(service, "p1", REQUEST, KEY, limit())).rejects.toMatchObject({ details: { created: "no" } });
  expect(server.requests).toHaveLength(1);
});

test("with an invalid project id the error says that no key was created", async () => {
  await using service = openTestService("http://127.0.0.1:1");
  const create = createKey(service, "..", REQUEST, KEY, limit());
  await expect(create).rejects.toMatchObject({ code: "config", details: { created: "no" } });
});

test("a create has a connection of its own, because the service may close an idle one", async () => {
  await using server = await scriptedServer(({ method }, response) =>
    answerJson(response, 200, method === "POST" ? CREATED : {}),
  );
  await using service = openTestService(server.origin);
  await service.call({ method: "GET", path: ["v1", "projects", "p1"], retry: true }, KEY, limit());
  await createKey(service, "p1", REQUEST, KEY, limit());
  expect(server.connections()).toBe(2);
  expect(server.requests.map(({ headers }) => headers.connection)).toEqual(["keep-alive", "close"]);
});

test("the reason of an abort before a create is thrown as it is, and nothing is sent", async () => {
  await using server = await scriptedServer(ok(CREATED));
  await using service = openTestService(server.origin);
  const reason = new AppError("stopped", "a signal ended the work");
  await expect(createKey(service, "p1", REQUEST, KEY, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(server.connections()).toBe(0);
});

test("an abort during a create does not lose the key", async () => {
  const controller = new AbortController();
  await using server = await scriptedServer((_request, response) => {
    controller.abort(new AppError("stopped", "a signal ended the work"));
    answerJson(response, 200, CREATED);
  });
  await using service = openTestService(server.origin);
  expect((await createKey(service, "p1", REQUEST, KEY, controller.signal)).key.reveal()).toBe(NEW_KEY_TEXT);
});

test("an abort during a create that then fails does not hide that a key may have been made", async () => {
  const controller = new AbortController();
  await using server = await scriptedServer((_request, response) => {
    controller.abort(new AppError("stopped", "a signal ended the work"));
    response.destroy();
  });
  await using service = openTestService(server.origin);
  const create = createKey(service, "p1", REQUEST, KEY, controller.signal);
  await expect(create).rejects.toMatchObject({ code: "unavailable", details: { created: "unknown" } });
});
