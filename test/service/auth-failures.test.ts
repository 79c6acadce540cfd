import { expect, test } from "vitest";
import { Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/service.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

const OTHER_KEY = new Secret("sk_CANARY_other_0123456789");

function read(service: Service, key = KEY, project = "p1", part = "usage"): Promise<unknown> {
  return service.call({ method: "GET", path: ["v1", "projects", project, part], retry: true }, key, limit());
}

test("a refused key is not sent again, by whatever call", async () => {
  await using server = await scriptedServer((_request, response) => answer(response, 401, "Invalid credentials."));
  await using service = openTestService(server.origin);
  await expect(read(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(read(service, KEY, "p2")).rejects.toThrow(/^not called again after a refusal: .*Invalid credentials/);
  expect(server.requests).toHaveLength(1);
});

test("calls that wait for a permit are not sent once their key is refused", async () => {
  await using server = await scriptedServer(({ number }, response) =>
    number === 1 ? answerJson(response, 200, {}) : answer(response, 401, ""),
  );
  await using service = openTestService(server.origin, { maxConcurrent: 2 });
  await read(service);
  await Promise.allSettled(Array.from({ length: 20 }, (_, i) => read(service, KEY, "p1", `part-${i}`)));
  expect(server.requests).toHaveLength(3);
});

test("a refused key is recognised by its text, and another key is still sent", async () => {
  await using server = await scriptedServer(({ headers }, response) =>
    headers.authorization?.includes("other") ? answerJson(response, 200, {}) : answer(response, 401, ""),
  );
  await using service = openTestService(server.origin);
  await expect(read(service)).rejects.toMatchObject({ code: "unauthorized" });
  await read(service, OTHER_KEY);
  await expect(read(service, new Secret(KEY.reveal()))).rejects.toMatchObject({ code: "unauthorized" });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["a 403", 403, "Forbidden"],
  ["a 401 that names a scope", 401, "Check that your account has the 'keys:read' scope for this project."],
])("%s refuses only that operation of the key", async (_name, status, details) => {
  await using server = await scriptedServer(({ target }, response) =>
    target.endsWith("/keys") ? answerJson(response, status, { details }) : answerJson(response, 200, {}),
  );
  await using service = openTestService(server.origin);
  await expect(read(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  await read(service, KEY, "p1", "usage");
  await expect(read(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized", details: { status } });
  await expect(read(service, KEY, "p2", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  expect(server.requests.map(({ target }) => target)).toEqual([
    "/v1/projects/p1/keys",
    "/v1/projects/p1/usage",
    "/v1/projects/p2/keys",
  ]);
});

test("a refused key is sent again after forgetAuthFailures", async () => {
  await using server = await scriptedServer(({ number }, response) =>
    number === 1 ? answer(response, 401, "") : answerJson(response, 200, {}),
  );
  await using service = openTestService(server.origin);
  await expect(read(service)).rejects.toMatchObject({ code: "unauthorized" });
  service.forgetAuthFailures();
  await read(service);
});

test("forgetAuthFailures for one key keeps the refusals of other keys", async () => {
  await using server = await scriptedServer((_request, response) => answer(response, 401, ""));
  await using service = openTestService(server.origin);
  await expect(read(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(read(service, OTHER_KEY)).rejects.toMatchObject({ code: "unauthorized" });
  service.forgetAuthFailures(OTHER_KEY);
  await expect(read(service)).rejects.toThrow("not called again");
  await expect(read(service, OTHER_KEY)).rejects.not.toThrow("not called again");
  expect(server.requests).toHaveLength(3);
});

test.each([
  [401, "Invalid credentials.", "does not accept the key: Invalid credentials.; check the key and service.authScheme"],
  [403, "No.", "may not do this: No.; the key needs the scope project:read or usage:read, and access to this project"],
  [
    403,
    "Check that your account has the 'usage:read' scope for this project.",
    "the key needs the scope usage:read, and access to this project",
  ],
  [404, "Not found.", "Not found.; check the project id, and that the key belongs to that project"],
])("the error for a %i with the body %j says what to do", async (status, body, expected) => {
  await using server = await scriptedServer((_request, response) => answer(response, status, body));
  await using service = openTestService(server.origin);
  const call = service.call(
    { method: "GET", path: ["v1", "projects", "p1"], retry: true, scopes: ["project:read", "usage:read"] },
    KEY,
    limit(),
  );
  await expect(call).rejects.toThrow(expected);
});
