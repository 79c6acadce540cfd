// Certificates that must not be trusted, at the service and at the database: a server that shows one gets no data, and so no key and
// no password.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { authority, certificate } from "../support/certificates.ts";
import { copyDatabase } from "../support/database.ts";
import { runProgram } from "../support/program.ts";
import { scriptedServer } from "../support/scripted-server.ts";
import { KEY, openSlots } from "./slots.ts";
import { type Identity, tlsDatabase, tlsService } from "./tls-servers.ts";

const trusted = authority("an authority that is trusted");
const GOOD = certificate({ by: trusted });
/** Without these settings old versions of TLS are not even offered. */
const OLD = { ciphers: "DEFAULT@SECLEVEL=0", minVersion: "TLSv1" } as const;

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-faults-"));
afterAll(() => rm(folder, { recursive: true }));
const NODE_EXTRA_CA_CERTS = path.join(folder, "authority.pem");
await writeFile(NODE_EXTRA_CA_CERTS, trusted.cert);

const UNTRUSTED: Readonly<Record<string, Identity>> = {
  "an expired certificate": certificate({ by: trusted, until: "20240101000000Z" }),
  "a certificate that is not valid yet": certificate({ by: trusted, from: "20480101000000Z" }),
  "a certificate for another address": certificate({ by: trusted, ip: [10, 0, 0, 1] }),
  "a certificate of an unknown authority": certificate({ by: authority("an authority that is not") }),
  "a certificate of another authority with the same name": certificate({ by: authority(trusted.name) }),
  "a self-signed certificate": certificate(),
  "TLS 1.0": { ...GOOD, ...OLD, maxVersion: "TLSv1" },
  "TLS 1.1": { ...GOOD, ...OLD, maxVersion: "TLSv1.1" },
};

test.for(Object.entries(UNTRUSTED))("a service with %s gets no request", async ([_, identity]) => {
  await using server = await tlsService(identity);
  await using slots = await openSlots({ serviceUrl: `https://127.0.0.1:${server.port}`, names: ["one"] });

  const { status } = await slots.run({ NODE_EXTRA_CA_CERTS });

  expect({ status, received: server.received() }).toEqual({ status: 1, received: "" });
  const state = (await slots.states()).get("one");
  expect(state).toMatchObject({ status: "failed", error: expect.stringMatching(/certificate|connection failed/) });
});

test("a service with a certificate of a trusted authority gets the request", async () => {
  await using server = await tlsService(GOOD);
  await using slots = await openSlots({ serviceUrl: `https://127.0.0.1:${server.port}`, names: ["one"] });

  expect(await slots.run({ NODE_EXTRA_CA_CERTS })).toMatchObject({ status: 0 });
  expect(server.received()).toContain(`Token ${KEY}`);
});

test.for(Object.entries(UNTRUSTED))("a database with %s gets no data", async ([_, identity]) => {
  await using database = await copyDatabase();
  await using door = await tlsDatabase(identity, database.directUrl);

  const { status, stderr } = await throughDoor(door.port, database.directUrl, "verify-full", { NODE_EXTRA_CA_CERTS });

  expect({ status, received: door.received() }).toEqual({ status: 1, received: "" });
  expect(stderr).toMatch(/database at 127.*(certificate|altname|TLS|SSL)/i);
});

test.for(["verify-full", "verify-ca", "require"])(
  "with sslmode=%s a database must show a certificate of an authority that is trusted",
  async (sslmode) => {
    await using database = await copyDatabase();
    await using door = await tlsDatabase(GOOD, database.directUrl);

    const unknown = await throughDoor(door.port, database.directUrl, sslmode, {});
    expect({ status: unknown.status, received: door.received() }).toEqual({ status: 1, received: "" });
    const known = await throughDoor(door.port, database.directUrl, sslmode, { NODE_EXTRA_CA_CERTS });
    expect(known.status, known.stderr).toBe(0);
    expect(door.received()).not.toBe("");
  },
);

test("an environment variable that turns off the check of certificates is refused before anything is called", async () => {
  await using service = await scriptedServer((_, response) => response.end());
  await using slots = await openSlots({ serviceUrl: service.origin, names: ["one"] });

  const { status, stderr } = await slots.run({ NODE_TLS_REJECT_UNAUTHORIZED: "0" });

  expect(stderr).toMatch(/NODE_TLS_REJECT_UNAUTHORIZED.*NODE_EXTRA_CA_CERTS/);
  expect({ status, connections: service.connections() }).toEqual({ status: 2, connections: 0 });
});

function throughDoor(port: number, databaseUrl: string, sslmode: string, env: Readonly<Record<string, string>>) {
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String(port);
  url.searchParams.set("sslmode", sslmode);
  return runProgram(["migrate"], { env: { DATABASE_URL: url.href, ...env }, cwd: folder });
}
