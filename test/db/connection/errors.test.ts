import { expect, test } from "vitest";
import { isAccessDenied, isConnectionError } from "../../../src/db/connection/errors.ts";

const errorWith = (code: string, message = "made up"): Error => Object.assign(new Error(message), { code });

test.each(["08006", "08P01", "53300", "57P01", "57P03", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN"])(
  "%s is a connection error, which may pass",
  (code) => {
    expect(isConnectionError(errorWith(code))).toBe(true);
  },
);

test.each(["28P01", "28000", "3D000", "CERT_HAS_EXPIRED", "ERR_TLS_CERT_ALTNAME_INVALID", "EPROTO"])(
  "%s is a denied access, which will not pass",
  (code) => {
    expect([isAccessDenied(errorWith(code)), isConnectionError(errorWith(code))]).toEqual([true, false]);
  },
);

test.each(["23505", "42P01", "ENOENT"])("%s is neither a connection error nor a denied access", (code) => {
  expect([isAccessDenied(errorWith(code)), isConnectionError(errorWith(code))]).toEqual([false, false]);
});

test.each([
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
])("the message %j of a pooler is a denied access", (message) => {
  const error = errorWith("08P01", message);
  expect([isAccessDenied(error), isConnectionError(error)]).toEqual([true, false]);
});

test.each([
  "client_login_timeout (server down)",
  "server conn crashed?",
  "server login has been failing, try again later (server_login_retry)",
  "the database system is starting up",
  "no more connections allowed (max_client_conn)",
  "query_wait_timeout",
])("the message %j of a pooler is a connection error", (message) => {
  const error = errorWith("08P01", message);
  expect([isAccessDenied(error), isConnectionError(error)]).toEqual([false, true]);
});

test("a host with several addresses has a connection error only if each address has one", () => {
  const refused = errorWith("ECONNREFUSED");
  expect(isConnectionError(new AggregateError([refused, refused]))).toBe(true);
  expect(isConnectionError(new AggregateError([refused, errorWith("28P01")]))).toBe(false);
});
