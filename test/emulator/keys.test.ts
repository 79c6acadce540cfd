import { expect, test } from "vitest";
import { z } from "zod";
import type { Emulator } from "../support/emulator.ts";
import { ask, CONSOLE_KEY, NOON, SECRET, start } from "./ask.ts";

const Created = z.strictObject({
  api_key_id: z.uuid(),
  key: z.string(),
  comment: z.string(),
  scopes: z.array(z.string()),
  tags: z.array(z.string()).optional(),
  created: z.string(),
  expiration_date: z.string().optional(),
});

const REGULAR = { comment: "exporter", scopes: ["usage:read", "project:read"] };

async function create(emulator: Emulator, body: object): Promise<z.infer<typeof Created>> {
  const response = await ask(emulator, "keys", { method: "POST", body });
  if (response.status !== 200) throw new Error(`create: ${response.status} ${await response.text()}`);
  return Created.parse(await response.json());
}

test.each([
  ["usage:write keys:write", "keys:read keys:write usage:write"],
  ["member self-hosted:products", "member self-hosted:product:api self-hosted:product:engine"],
])("a key that is requested with the scopes %s gets %s", async (asked, granted) => {
  await using emulator = await start();
  expect((await create(emulator, { comment: "", scopes: asked.split(" ") })).scopes).toEqual(granted.split(" "));
});

test.each([
  ["broken JSON", "{"],
  ["no comment", { scopes: ["member"] }],
  ["no scopes", { comment: "" }],
  ["a role that does not exist", { ...REGULAR, scopes: ["membre"] }],
  ["a tag that is too long", { ...REGULAR, tags: ["x".repeat(129)] }],
  ["a lifetime of 0", { ...REGULAR, time_to_live_in_seconds: 0 }],
  ["a field that does not exist", { ...REGULAR, tag: ["a"] }],
])("a create with %s is refused", async (_, body) => {
  await using emulator = await start();
  const response = await ask(emulator, "keys", { method: "POST", body });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ category: "BAD_REQUEST", details: expect.any(String) });
  expect(emulator.keys()).toMatchObject([{ comment: "made in the console" }]);
});

test("a key with a time to live gets 401 as soon as it expires", async () => {
  await using emulator = await start();
  const created = await create(emulator, { ...REGULAR, time_to_live_in_seconds: 60 });
  const afterMs = (ms: number) => new Date(NOON.getTime() + ms);
  expect(created.expiration_date).toBe(afterMs(60_000).toISOString());

  emulator.now = () => afterMs(59_999);
  expect((await ask(emulator, "usage/breakdown", { secret: created.key })).status).toBe(200);
  emulator.now = () => afterMs(60_000);
  expect((await ask(emulator, "usage/breakdown", { secret: created.key })).status).toBe(401);
  expect(emulator.secretWorks(created.key)).toBe(false);
  expect(emulator.keys()).toMatchObject([{ state: "active" }, { state: "expired" }]);
  expect(await (await ask(emulator, "keys")).text()).not.toContain(created.api_key_id);
});

test("a list of keys has every field but the secret", async () => {
  await using emulator = await start();
  const { key, ...facts } = await create(emulator, { ...REGULAR, tags: ["nightly"] });
  const response = await ask(emulator, "keys");
  const text = await response.text();
  expect(JSON.parse(text).api_keys).toEqual([
    { api_key: expect.objectContaining({ comment: "made in the console" }) },
    { api_key: facts },
  ]);
  expect(text).not.toContain(key);
  expect(text).not.toContain(SECRET);
});

test.each([`Basic ${SECRET}`, "", `Token ${SECRET}x`])(
  "the authorization header '%s' gets a 401 in plain text",
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
