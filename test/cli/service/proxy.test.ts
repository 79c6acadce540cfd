// The whole program on a network whose only way out is a company's proxy.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { AUTHORITY, connectProxy, tlsFront } from "../../support/connect-proxy.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const { test, db } = await databaseTest();

const READING = { groupings: ["none"], window: lastDays(2) };

async function httpsContext(context: ProgramContext) {
  const emulator = await context.serve();
  const front = await tlsFront(emulator.url);
  const authority = path.join(context.folder, "authority.pem");
  await writeFile(authority, AUTHORITY.cert);
  await context.configure(smallConfig(`https://127.0.0.1:${front.port}`));
  return { emulator, front, env: { NODE_EXTRA_CA_CERTS: authority, LOG_LEVEL: "trace" } };
}

test("the proxy sees neither the key nor the path of a call", async ({ context }) => {
  const { emulator, front, env } = await httpsContext(context);
  await using _front = front;
  const password = context.newSecret();
  await using proxy = await connectProxy({ credentials: `me:${password}` });
  const proxied = { ...env, HTTPS_PROXY: `http://me:${password}@127.0.0.1:${proxy.port}` };

  expect(await context.run(["export"], proxied)).toMatchObject({ status: 0 });
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
  expect(await context.run(["check"], proxied)).toMatchObject({ status: 0 });

  expect(new Set(proxy.tunnels)).toEqual(new Set([`127.0.0.1:${front.port}`]));
  expect(proxy.requests).toEqual([]);
  for (const text of [context.key, "/v1/", "Token "]) expect(proxy.seen()).not.toContain(text);
});
