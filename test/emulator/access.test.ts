import { expect, test } from "vitest";
import { ask, CONSOLE_KEY, SECRET, start } from "./ask.ts";

test.each([`Token ${SECRET}`, `Bearer ${SECRET}`, SECRET])("the header '%s' is accepted", async (authorization) => {
  await using emulator = await start();
  expect((await ask(emulator, "/v1/projects", { headers: { authorization } })).status).toBe(200);
});

test.each([`Basic ${SECRET}`, "", `Token ${SECRET}x`])(
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
  ["POST", "keys", "keys:write"],
  ["DELETE", "keys/some-id", "keys:write"],
])("the error of %s %s names the missing scope %s", async (method, path, scope) => {
  await using emulator = await start({ consoleKeys: [{ ...CONSOLE_KEY, scopes: ["usage:write"] }] });
  const response = await ask(emulator, path, { method });
  expect(response.status).toBe(403);
  expect(await response.json()).toEqual({
    ...{ category: expect.any(String), message: expect.any(String) },
    details: `Check that your account has the '${scope}' scope for this project.`,
    request_id: response.headers.get("dg-request-id"),
  });
});

test.each([
  [["project:read"], 200],
  [["member"], 200],
  [["project:*"], 200],
  [["project:write", "usage:read", "keys:write"], 403],
])("a breakdown request with a key of the scopes %j is answered with %i", async (scopes, status) => {
  await using emulator = await start({ consoleKeys: [{ ...CONSOLE_KEY, scopes }] });
  expect((await ask(emulator, "usage/breakdown")).status).toBe(status);
});

test.each(["/v1/projects/p2/usage/breakdown", "/v1/projects/%zz/usage/breakdown", "//"])(
  "%s is answered with 404 for a key of project p1",
  async (path) => {
    const other = { ...CONSOLE_KEY, secret: "b", projectId: "p2" };
    await using emulator = await start({ consoleKeys: [CONSOLE_KEY, other] });
    const response = await ask(emulator, path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ category: "NOT_FOUND", request_id: expect.any(String) });
  },
);
