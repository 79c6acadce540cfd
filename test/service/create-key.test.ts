// A create is sent once under every fault, and its error tells whether a key may have been made.

import dns from "node:dns";
import { expect, onTestFinished, test, vi } from "vitest";
import { AppError, errorCode } from "../../src/errors.ts";
import { createKey, type KeyRequest, madeNoKey } from "../../src/service/keys.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findSecrets } from "../support/leak-search.ts";
import { answering, answeringJson, answerJson, type Script } from "../support/scripted-server.ts";
import { hangSignal, KEY, openTestService, serve } from "./open-test-service.ts";

const NEW_KEY_TEXT = "createdCANARYq7w5e3r1t9";
const REQUEST: KeyRequest = { comment: "usage exporter", scopes: ["member"], tags: ["usage-exporter"] };
const CREATED = {
  ...{ api_key_id: "k2", key: NEW_KEY_TEXT, comment: "usage exporter", scopes: ["keys:read", "member"] },
  ...{ tags: ["usage-exporter"], created: "2026-03-01T00:00:00.000000Z" },
};

/** Serves the script, and returns the function that creates a key there. */
async function open(script: Script, timeoutSeconds = 20) {
  const { server, service } = await serve(script, { timeoutSeconds });
  const create = (request = REQUEST, signal = hangSignal()) => createKey(service, "p1", request, KEY, signal);
  return { server, service, create };
}

/** The error's code, and whether certainly no key was made. */
const verdict = (error: unknown, signal = hangSignal()) => [errorCode(error), madeNoKey(error, signal)];

test.each([200, 201])("the key in a %i answer is returned, its text in a Secret", async (status) => {
  const { server, create } = await open(answeringJson(status, CREATED));
  const { key, ...made } = await create();
  expect(key.reveal()).toBe(NEW_KEY_TEXT);
  const created = new Date("2026-03-01T00:00:00.000Z");
  expect(made).toEqual({ apiKeyId: "k2", scopes: ["keys:read", "member"], created });
  expect(server.requests[0]).toMatchObject({ method: "POST", target: "/v1/projects/p1/keys" });
});

test.each<[string, Partial<KeyRequest>, object]>([
  ["tags", {}, { tags: ["usage-exporter"] }],
  ["no tags", { tags: [] }, {}],
  ["an expiry", { tags: [], expiresInSeconds: 3600 }, { time_to_live_in_seconds: 3600 }],
])("a key with %s is requested", async (_name, part, body) => {
  const { server, create } = await open(answeringJson(200, CREATED));
  await create({ ...REQUEST, ...part });
  const sent = JSON.parse(server.requests[0]?.body ?? "");
  expect(sent).toEqual({ comment: "usage exporter", scopes: ["member"], ...body });
  expect(server.requests[0]?.headers["content-type"]).toBe("application/json");
});

test.each([{}, null, "", "yesterday"])("unreadable fields, such as created %j, do not lose the key", async (time) => {
  const odd = { api_key_id: "k2", key: NEW_KEY_TEXT, comment: 7, scopes: null, tags: null, created: time };
  const { create } = await open(answeringJson(200, odd));
  const { apiKeyId, key, scopes, created } = await create();
  expect([apiKeyId, key.reveal(), scopes, created]).toEqual(["k2", NEW_KEY_TEXT, [], undefined]);
});

async function failureOf(script: Script, timeoutSeconds?: number) {
  const { server, service, create } = await open(script, timeoutSeconds);
  const error: unknown = await create().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(AppError);
  return { error, sent: server.requests.length, shown: `${JSON.stringify(error)}${error}${service.lines}` };
}

test.each([400, 401, 403, 404, 409, 422, 429])("after a %i the error says that no key was created", async (status) => {
  const { error, sent } = await failureOf(answeringJson(status));
  expect([error, madeNoKey(error, hangSignal())]).toMatchObject([{ details: { status } }, true]);
  expect(sent).toBe(1);
});

const created = (part: object) => answeringJson(200, { ...CREATED, ...part });
const HUGE = "x".repeat(1_001);

test.each<[string, Script, number?]>([
  ["a 500", answeringJson(500)],
  ["a 502 of a gateway", answering(502, "<html></html>")],
  ["a 503 that asks to wait", answering(503, "", { "retry-after": "1" })],
  ["a 503 that asks for an hour", answering(503, "", { "retry-after": "3600" })],
  ["a 408", answering(408)],
  ["a redirect", answering(307, "", { location: "/elsewhere" })],
  ["no answer at all", () => undefined, 2],
  ["a lost connection", (_request, response) => response.destroy()],
  [
    "an answer that is cut",
    (_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 1_000 });
      response.write(JSON.stringify(CREATED), () => response.destroy());
    },
  ],
  ["a success without a body", answering(204)],
  ["a success in HTML", answering(200, "<p>", { "content-type": "text/html" })],
  ["an answer without a key", created({ key: undefined })],
  ["an answer with a huge key", created({ key: HUGE })],
  ["an answer with a key of two lines", created({ key: `${NEW_KEY_TEXT}\r\nx: y` })],
  ["an answer with a number as the key", created({ key: 7 })],
  ["an answer without an id", created({ api_key_id: undefined })],
  ["an answer with a path as the id", created({ api_key_id: "../k1" })],
])("after %s the error does not say that no key was created", async (_name, script, timeoutSeconds) => {
  const { error, sent, shown } = await failureOf(script, timeoutSeconds);
  expect(madeNoKey(error, hangSignal())).toBe(false);
  expect(sent).toBe(1);
  expect(shown).not.toContain("CANARY");
});

const QUOTED = Object.entries(ENCODINGS).flatMap(([name, encode]) =>
  [200, 400, 502].map((status) => [status, name, encode] as const),
);

test.each(QUOTED)("nothing is quoted of a %i that holds the new key, %s", async (status, _name, encode) => {
  const said = `made ${encode(NEW_KEY_TEXT)}`;
  const body = { error: said, err_code: said, message: said, details: said, request_id: said, api_key_id: said };
  const headers = { "dg-request-id": said.replaceAll(/[^\x20-\x7e]/g, "") };
  const { shown } = await failureOf(answeringJson(status, body, headers));
  expect(shown).not.toContain("made");
  expect(findSecrets(shown, [NEW_KEY_TEXT])).toEqual([]);
});

test("no scope and no id that contains the new key is returned", async () => {
  const body = { ...CREATED, scopes: ["member", Buffer.from(NEW_KEY_TEXT).toString("hex")] };
  const { create } = await open(({ number }, response) =>
    answerJson(response, 200, number === 1 ? body : { ...CREATED, api_key_id: `id-${NEW_KEY_TEXT}` }),
  );
  expect(await create()).toMatchObject({ scopes: ["member"] });
  expect(await create().catch(verdict)).toEqual(["bad_answer", false]);
});

test.each([1, 2])("after %i refused connections the error says that no key was created", async (count) => {
  const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 })).slice(0, count);
  const answer = (_host: string, _options: object, done: (...found: unknown[]) => void) => done(null, addresses);
  const lookup = vi.spyOn(dns, "lookup").mockImplementation(answer as typeof dns.lookup);
  onTestFinished(() => lookup.mockRestore());
  await using service = openTestService("http://service.example:1");
  const created = createKey(service, "p1", REQUEST, KEY, hangSignal());
  expect(await created.catch(verdict)).toEqual(["unavailable", true]);
  expect([lookup.mock.calls.length, service.sleeps]).toEqual([1, []]);
});

test("during the pause after a 429 the error says that no key was created", async () => {
  const { server, create } = await open(answering(429, "", { "retry-after": "3600" }));
  for (let i = 0; i < 2; i++) expect(await create().catch(verdict)).toEqual(["rate_limited", true]);
  expect(server.requests).toHaveLength(1);
});

test("a create has a connection of its own", async () => {
  const { server, service, create } = await open(answeringJson(200, CREATED));
  await service.call({ operation: "project", method: "GET", path: ["v1", "projects", "p1"] }, KEY, hangSignal());
  await create();
  // The service may close an idle connection.
  expect(server.connections()).toBe(2);
  expect(server.requests.map(({ headers }) => headers.connection)).toEqual(["keep-alive", "close"]);
});

test("an abort before a create prevents the request", async () => {
  const { server, create } = await open(created({}));
  const reason = new AppError("stopped", "a signal ended the work");
  await expect(create(REQUEST, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(server.connections()).toBe(0);
});

test("an abort during a create does not lose the key", async () => {
  const controller = new AbortController();
  const { create } = await open((_request, response) => {
    controller.abort(new AppError("stopped", "a signal ended the work"));
    answerJson(response, 200, CREATED);
  });
  expect((await create(REQUEST, controller.signal)).key.reveal()).toBe(NEW_KEY_TEXT);
});

test("an abort during a create that then fails does not hide that a key may have been made", async () => {
  const controller = new AbortController();
  const { create } = await open((_request, response) => {
    controller.abort(new AppError("stopped", "a signal ended the work"));
    response.destroy();
  });
  const { signal } = controller;
  const failure = create(REQUEST, signal).catch((error: unknown) => verdict(error, signal));
  expect(await failure).toEqual(["unavailable", false]);
});
