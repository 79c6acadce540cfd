// If the database can't be used, a command says so in one sentence without the password, and does not call the service.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const test = programTest(database);

/** The URL of the test's database with one part replaced. */
function urlWith(part: { readonly [name in "host" | "username" | "password" | "pathname"]?: string }): string {
  return Object.assign(new URL(database.url), part).href;
}

type Trouble = {
  readonly url: (password: string) => string;
  readonly status: 1 | 2;
  readonly message: RegExp;
  /** Whether the case needs a server that asks for a password. A server given from outside may not. */
  readonly needsPasswords?: true;
};

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "a port where nobody listens": {
    url: (password) => `postgres://usage:${password}@127.0.0.1:1/usage`,
    status: 1,
    message:
      /^usage-export: the database at 127\.0\.0\.1:1\/usage can't be used: connect ECONNREFUSED \S+; start the server at this address, or correct DATABASE_URL$/m,
  },
  "a wrong password": {
    url: (password) => urlWith({ password }),
    status: 1,
    message: /^usage-export: the database at .* can't be used: (?:password|SASL) authentication failed/,
    needsPasswords: true,
  },
  "a database that does not exist": {
    url: () => urlWith({ pathname: "/no_such_database" }),
    status: 1,
    message:
      /^usage-export: the database at .* can't be used: database "no_such_database" does not exist; correct DATABASE_URL, or what the server allows$/m,
  },
  "another kind of URL": {
    url: (password) => `mysql://usage:${password}@127.0.0.1/usage`,
    status: 2,
    message: /^usage-export: DATABASE_URL: expected postgres:\/\/user:password@host:port\/database/,
  },
  "a password with a character that has a meaning in a URL": {
    url: (password) => `postgres://usage:${password}#1@127.0.0.1:1/usage`,
    status: 2,
    message: /^usage-export: DATABASE_URL: expected postgres:.*; in the password, write %23 for #/,
  },
};

test.for(Object.entries(TROUBLES))("%s", async ([_, { url, status, message, needsPasswords }], { context, skip }) => {
  skip(
    needsPasswords === true && (await letsIn(url("of nobody"))),
    "the given server lets everyone in without a password",
  );
  const emulator = await serveAndConfigure(context);

  const result = await context.run(["export"], { DATABASE_URL: url(context.newSecret()), LOG_LEVEL: "error" });

  expect(result).toMatchObject({ status, stdout: "", stderr: expect.stringMatching(message) });
  expect(result.stderr.trim().split("\n")).toHaveLength(1);
  expect(emulator.requests).toEqual([]);
});

async function letsIn(url: string): Promise<boolean> {
  return runStatement(url, "select 1").then(
    () => true,
    () => false,
  );
}

async function serveAndConfigure(context: ProgramContext) {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  return emulator;
}
