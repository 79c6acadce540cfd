import { expect, test } from "vitest";
import { isAccessDenied, isConnectionError } from "../../../src/db/connection/errors.ts";

const errorWith = (code: string, message = "made up"): Error => Object.assign(new Error(message), { code });

function kindOf(error: Error): string {
  const kinds = [isConnectionError(error) && "connection", isAccessDenied(error) && "denied access"];
  return kinds.filter((kind) => kind !== false).join(" and ") || "neither";
}

/** A connection error may pass, and a denied access will not. A server without room for another connection is both. */
const CODES = {
  connection: "08006 08P01 57P01 57P03 ECONNREFUSED ECONNRESET ETIMEDOUT EAI_AGAIN",
  "connection and denied access": "53300",
  "denied access": "28P01 28000 3D000 CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID EPROTO",
  neither: "23505 42P01 ENOENT",
};

test.each(Object.entries(CODES))("an error is of the kind %s with these codes: %s", (kind, codes) => {
  for (const code of codes.split(" ")) expect([code, kindOf(errorWith(code))]).toEqual([code, kind]);
});

/** A pooler has one code for all. */
const MESSAGES = {
  "denied access": [
    "SASL authentication failed",
    "password authentication failed",
    'password authentication failed for user "usage"',
    "no such database: usage",
    "no such user: usage",
    'database "usage" does not exist',
    'role "usage" does not exist',
    'database "usage" is disabled',
    'role "usage" is not permitted to log in',
    'no pg_hba.conf entry for host "127.0.0.1"',
    "not allowed",
  ],
  connection: [
    "client_login_timeout (server down)",
    "server conn crashed?",
    "server login has been failing, try again later (server_login_retry)",
    "the database system is starting up",
    "no more connections allowed (max_client_conn)",
    "query_wait_timeout",
  ],
};

test.each(Object.entries(MESSAGES))("an error of a pooler is of the kind %s with these messages", (kind, messages) => {
  for (const message of messages) expect([message, kindOf(errorWith("08P01", message))]).toEqual([message, kind]);
});

test("a host with several addresses has a connection error only if each address has one", () => {
  const refused = errorWith("ECONNREFUSED");
  expect(isConnectionError(new AggregateError([refused, refused]))).toBe(true);
  expect(isConnectionError(new AggregateError([refused, errorWith("28P01")]))).toBe(false);
});
