import net from "node:net";
import { sql } from "kysely";
import { afterAll, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";

const { url, directUrl } = await testDatabase();
const lines: string[] = [];
const db = openPostgres(url, ({ message }) => lines.push(message));
afterAll(() => db.destroy());

test("days, large numbers and exact numbers are read as text, and times as Date objects", async () => {
  const { rows } = await sql`
    select date '2026-03-29' as day, 9007199254740993::bigint as large, 0.10000000000000000001 as exact, 7::integer as small,
      timestamptz '2026-03-29 01:30:00+02' as moment, null::date as nothing
  `.execute(db);
  expect(rows).toEqual([
    {
      day: "2026-03-29",
      large: "9007199254740993",
      exact: "0.10000000000000000001",
      small: 7,
      moment: new Date("2026-03-28T23:30:00Z"),
      nothing: null,
    },
  ]);
});

test("days and times are read correctly under every DateStyle of the database", async () => {
  const name = new URL(directUrl).pathname.slice(1);
  for (const style of ["German", "SQL, DMY", "Postgres, MDY"]) {
    await runStatement(directUrl, `alter database ${name} set datestyle = ${style}`);
    await using other = openPostgres(url);
    const { rows } = await sql`
      select date '2026-03-04' as day, (date '2026-03-04')::text as text, timestamptz '2026-03-04T05:06:07Z' as moment
    `.execute(other);
    expect(rows).toEqual([{ day: "2026-03-04", text: "2026-03-04", moment: new Date("2026-03-04T05:06:07Z") }]);
  }
  await runStatement(directUrl, `alter database ${name} reset datestyle`);
});

// Behind a pooler, the connections that the server knows are the pooler's, which replaces them without telling its clients.
test.skipIf(url !== directUrl)("losing idle connections fails no query, and they are replaced", async () => {
  await Promise.all([1, 2, 3].map(() => sql`select pg_sleep(0.05)`.execute(db)));
  const name = new URL(url).pathname.slice(1);
  await runStatement(
    url,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
  );
  await expect.poll(() => lines.length).toBeGreaterThanOrEqual(3);
  expect(lines[0]).toContain("terminating connection due to administrator command");
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
});

test("losing a connection in use fails only the query that uses it", async () => {
  await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(connection);
    const sleeping = sql`select pg_sleep(60)`.execute(connection);
    await Promise.all([
      expect(sleeping).rejects.toMatchObject({ code: "57P01" }),
      runStatement(url, `select pg_terminate_backend(${rows[0]?.pid}, 10000)`),
    ]);
  });
  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }]);
});

test("one process takes four connections at most", async () => {
  await Promise.all(Array.from({ length: 12 }, () => sql`select pg_sleep(0.05)`.execute(db)));
  const rows = await runStatement(
    url,
    "select 1 from pg_stat_activity where datname = current_database() and application_name = 'usage-export'",
  );
  expect(rows).toHaveLength(4);
});

test("the startup packet has no parameter that a pooler refuses", async () => {
  const startupPacket = Promise.withResolvers<Buffer>();
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (packet) => {
      startupPacket.resolve(packet);
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  await using pooled = openPostgres(`postgres://someone:secret@127.0.0.1:${address.port}/somewhere`);
  await expect(sql`select 1`.execute(pooled)).rejects.toThrow();
  server.close();
  // The packet has a length and a version, then names and values in turn, each ended by NUL.
  const texts = (await startupPacket.promise).subarray(8).toString().split("\0");
  const names = texts.filter((text, i) => i % 2 === 0 && text !== "");
  expect(new Set(names)).toEqual(
    new Set(["user", "database", "client_encoding", "application_name", "DateStyle", "standard_conforming_strings"]),
  );
});
