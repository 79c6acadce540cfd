import { expect, test } from "vitest";
import { type EmulatorOptions, startEmulator } from "../../src/emulator/server.ts";
import { ask, CONSOLE_KEY, SECRET } from "./ask.ts";

const start = (options: Partial<EmulatorOptions> = {}) => startEmulator({ consoleKeys: [CONSOLE_KEY], ...options });

test.each([`Token ${SECRET}`, `Bearer ${SECRET}`, SECRET])("the header '%s' is accepted", async (authorization) => {
  await using emulator = await start();
  expect((await ask(emulator, "/v1/projects", { headers: { authorization } })).status).toBe(200);
});

test.each([`Basic ${SECRET}`, `Token  `, "Token", "", `Token ${SECRET}x`, `Token ${SECRET} ${SECRET}`])(
  "the header '%s' is refused in plain text",
  async (authorization) => {
    await using emulator = await start();
    const response = await ask(emulator, "usage/breakdown", { headers: { authorization } });
    expect(response.status).toBe(401);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(await response.text()).toBe("Invalid credentials.");
  },
);

test.each([
  ["GET", "usage/breakdown", "project:read"],
  ["GET", "usage/fields", "project:read"],
  ["GET", "keys", "keys:read"],
  ["GET", "keys/some-id", "keys:read"],
  ["POST", "keys", "keys:write"],
  ["DELETE", "keys/some-id", "keys:write"],
])("the error of %s %s names the missing scope %s", async (method, path, scope) => {
  await using emulator = await start({ consoleKeys: [{ ...CONSOLE_KEY, scopes: ["usage:write"] }] });
  const response = await ask(emulator, path, { method });
  expect(response.status).toBe(403);
  expect(await response.json()).toEqual({
    category: expect.any(String),
    message: expect.any(String),
    details: `Check that your account has the '${scope}' scope for this project.`,
    request_id: response.headers.get("dg-request-id"),
  });
});

test.each([
  [["project:read"], 200],
  [["member"], 200],
  [["admin"], 200],
  [["owner"], 200],
  [["project:*"], 200],
  [["project:write", "usage:read", "keys:write"], 403],
])("a breakdown request with a key of the scopes %j is answered with %i", async (scopes, status) => {
  await using emulator = await start({ consoleKeys: [{ ...CONSOLE_KEY, scopes }] });
  expect((await ask(emulator, "usage/breakdown")).status).toBe(status);
});

test.each([
  "/v1/projects/p2/usage/breakdown",
  "/v1/projects/nowhere/keys",
  "/v1/projects/../usage/breakdown",
  "/v1/projects/%zz/usage/breakdown",
  "/v1/projects/p1/usage",
  "/v2/projects",
  "//",
])("%s is answered with 404 for a key of project p1", async (path) => {
  await using emulator = await start({ consoleKeys: [CONSOLE_KEY, { ...CONSOLE_KEY, secret: "b", projectId: "p2" }] });
  const response = await ask(emulator, path);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ category: "NOT_FOUND", request_id: expect.any(String) });
});

test("every answer has a request id of its own", async () => {
  await using emulator = await start();
  const answers = [
    await ask(emulator, "usage/breakdown"),
    await ask(emulator, "usage/breakdown"),
    await ask(emulator, "usage/breakdown", { secret: "unknown" }),
    await ask(emulator, "keys", { method: "POST", body: {} }),
    await ask(emulator, "/nothing"),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 400, 404]);
  expect(new Set(answers.map(({ headers }) => headers.get("dg-request-id"))).size).toBe(answers.length);
});

test("a key sees its own project only", async () => {
  await using emulator = await start({ consoleKeys: [CONSOLE_KEY, { ...CONSOLE_KEY, secret: "b", projectId: "p2" }] });
  const response = await ask(emulator, "/v1/projects");
  expect(await response.json()).toEqual({ projects: [{ project_id: "p1", name: "p1" }] });
});

test("`requests` has every request with the id of its key, and no secret", async () => {
  await using emulator = await start();
  await ask(emulator, "usage/breakdown?grouping=tags&x=%20");
  await ask(emulator, "keys", { method: "POST", secret: "unknown" });
  const [key] = emulator.keys();
  expect(emulator.requests).toMatchObject([
    { method: "GET", path: "/v1/projects/p1/usage/breakdown?grouping=tags&x=%20", keyId: key?.apiKeyId, status: 200 },
    { method: "POST", path: "/v1/projects/p1/keys", keyId: undefined, status: 401 },
  ]);
  expect(emulator.requests[0]?.receivedAt).toBeInstanceOf(Date);
  expect(JSON.stringify([emulator.requests, emulator.keys()])).not.toContain(SECRET);
});

test("if a test's own usage throws, the emulator answers 500 with the error", async () => {
  await using emulator = await start({
    usage: () => {
      throw new Error("the test is wrong");
    },
  });
  const response = await ask(emulator, "usage/breakdown");
  expect(response.status).toBe(500);
  expect(await response.text()).toContain("the test is wrong");
});

test("two console keys with one secret are refused at the start", async () => {
  await expect(start({ consoleKeys: [CONSOLE_KEY, { ...CONSOLE_KEY, projectId: "p2" }] })).rejects.toThrow("p2");
});

test("a second close does nothing, and a closed emulator accepts no connections", async () => {
  const emulator = await start();
  await emulator.close();
  await emulator.close();
  await expect(ask(emulator, "/v1/projects")).rejects.toThrow("fetch failed");
});
