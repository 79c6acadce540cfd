import { expect, test } from "vitest";
import { Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/service.ts";
import { answer, answering, answeringJson, answerJson } from "../support/scripted-server.ts";
import { KEY, limit, serve } from "./open-test-service.ts";

const OTHER_KEY = new Secret("sk_CANARY_other_0123456789");

function call(service: Service, key = KEY, project = "p1", part = "usage"): Promise<unknown> {
  return service.call(
    { operation: "read", method: "GET", path: ["v1", "projects", project, part], retry: true },
    key,
    limit(),
  );
}

test("a refused key is not sent again, by whatever call", async () => {
  const { server, service } = await serve(answering(401, "Invalid credentials."));
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(call(service, KEY, "p2")).rejects.toThrow(/^not called again after a refusal: .*Invalid credentials/);
  expect(server.requests).toHaveLength(1);
});

test("calls that wait for a permit are not sent once their key is refused", async () => {
  const { server, service } = await serve(
    ({ number }, response) => answerJson(response, number === 1 ? 200 : 401, {}),
    { maxConcurrent: 2 },
  );
  await call(service);
  await Promise.allSettled(Array.from({ length: 20 }, (_, i) => call(service, KEY, "p1", `part-${i}`)));
  expect(server.requests).toHaveLength(3);
});

test("a refused key is recognised by its text, and another key is still sent", async () => {
  const { server, service } = await serve(({ headers }, response) =>
    answerJson(response, headers.authorization?.includes("other") ? 200 : 401, {}),
  );
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await call(service, OTHER_KEY);
  await expect(call(service, new Secret(KEY.reveal()))).rejects.toMatchObject({ code: "unauthorized" });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["a 403", 403, "Forbidden"],
  ["a 401 that names a scope", 401, "Check that your account has the 'keys:read' scope for this project."],
])("%s refuses only that operation of the key", async (_name, status, details) => {
  const { server, service } = await serve(({ target }, response) =>
    target.endsWith("/keys") ? answerJson(response, status, { details }) : answerJson(response, 200, {}),
  );
  await expect(call(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  await call(service, KEY, "p1", "usage");
  await expect(call(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized", details: { status } });
  await expect(call(service, KEY, "p2", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  const targets = ["/v1/projects/p1/keys", "/v1/projects/p1/usage", "/v1/projects/p2/keys"];
  expect(server.requests.map(({ target }) => target)).toEqual(targets);
});

test("a refused key is sent again after forgetRefusals", async () => {
  const { service } = await serve(({ number }, response) =>
    number === 1 ? answer(response, 401, "") : answerJson(response, 200, {}),
  );
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  service.forgetRefusals();
  await call(service);
});

test("forgetRefusals for one key keeps the refusals of other keys", async () => {
  const { server, service } = await serve(answeringJson(401));
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(call(service, OTHER_KEY)).rejects.toMatchObject({ code: "unauthorized" });
  service.forgetRefusals(OTHER_KEY);
  await expect(call(service)).rejects.toThrow("not called again");
  await expect(call(service, OTHER_KEY)).rejects.not.toThrow("not called again");
  expect(server.requests).toHaveLength(3);
});

test.each([
  [401, "Invalid credentials.", "does not accept the key: Invalid credentials.; check the key and service.authScheme"],
  [403, "No.", "may not do this: No.; the key needs the scope project:read or usage:read, and access to this project"],
  [403, "It has not the 'usage:read' scope.", "the key needs the scope usage:read, and access to this project"],
  [404, "Not found.", "Not found.; check the project id, and that the key belongs to that project"],
])("the error for a %i with the body %j says what to do", async (status, body, expected) => {
  const { read } = await serve(answering(status, body));
  await expect(read({ scopes: ["project:read", "usage:read"] })).rejects.toThrow(expected);
});
