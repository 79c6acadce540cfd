// Refused keys, the delay before another attempt, and the wait that the service asks for.

import { expect, test } from "vitest";
import type { ErrorCode } from "../../src/errors.ts";
import { Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/client-types.ts";
import { requestedWaitMs } from "../../src/service/errors.ts";
import type { ResponseHeaders } from "../../src/service/reply.ts";
import { ATTEMPTS_MAX, retryDelayMs } from "../../src/service/retry.ts";
import { answering, answeringJson, answerJson } from "../support/scripted-server.ts";
import { hangSignal, KEY, serve } from "./open-test-service.ts";

const OTHER_KEY = new Secret("sk_CANARY_other_0123456789");

function call(service: Service, key = KEY, project = "p1", part = "usage"): Promise<unknown> {
  return service.call({ operation: "read", method: "GET", path: ["v1", "projects", project, part] }, key, hangSignal());
}

test("a refused key is not sent again, by whatever call", async () => {
  const { server, service } = await serve(answering(401, "Invalid credentials."));
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(call(service, KEY, "p2")).rejects.toThrow(/^not called again after a refusal: .*Invalid credentials/);
  expect(server.requests).toHaveLength(1);
});

test("calls that wait for a permit are not sent once their key is refused", async () => {
  const { server, service } = await serve(
    ({ number }, response) => answerJson(response, number === 1 ? 200 : 401, {}),
    { maxConcurrent: 2 },
  );
  await call(service);
  await Promise.allSettled(Array.from({ length: 20 }, (_, i) => call(service, KEY, "p1", `part-${i}`)));
  expect(server.requests).toHaveLength(3);
});

test("a refused key is recognised by its text", async () => {
  const { server, service } = await serve(({ headers }, response) =>
    answerJson(response, headers.authorization?.includes("other") ? 200 : 401, {}),
  );
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await call(service, OTHER_KEY);
  await expect(call(service, new Secret(KEY.reveal()))).rejects.toMatchObject({ code: "unauthorized" });
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["a 403", 403, "Forbidden"],
  ["a 401 that names a scope", 401, "Check that your account has the 'keys:read' scope for this project."],
])("%s refuses only that operation of the key", async (_name, status, details) => {
  const { server, service } = await serve(({ target }, response) =>
    target.endsWith("/keys") ? answerJson(response, status, { details }) : answerJson(response, 200, {}),
  );
  await expect(call(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  await call(service, KEY, "p1", "usage");
  await expect(call(service, KEY, "p1", "keys")).rejects.toMatchObject({ code: "unauthorized", details: { status } });
  await expect(call(service, KEY, "p2", "keys")).rejects.toMatchObject({ code: "unauthorized" });
  const targets = ["/v1/projects/p1/keys", "/v1/projects/p1/usage", "/v1/projects/p2/keys"];
  expect(server.requests.map(({ target }) => target)).toEqual(targets);
});

test("forgetRefusals lets the given key, or every key, be sent again", async () => {
  const { server, service } = await serve(answeringJson(401));
  await expect(call(service)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(call(service, OTHER_KEY)).rejects.toMatchObject({ code: "unauthorized" });
  service.forgetRefusals(OTHER_KEY);
  await expect(call(service)).rejects.toThrow("not called again");
  await expect(call(service, OTHER_KEY)).rejects.not.toThrow("not called again");
  service.forgetRefusals();
  await expect(call(service)).rejects.not.toThrow("not called again");
  expect(server.requests).toHaveLength(4);
});

test.each([
  [401, "Invalid credentials.", "does not accept the key: Invalid credentials.; check the key and service.authScheme"],
  [403, "No.", "may not do this: No.; the key needs the scope project:read or usage:read, and access to this project"],
  [403, "It has not the 'usage:read' scope.", "the key needs the scope usage:read, and access to this project"],
  [404, "Not found.", "Not found.; check the project id, and that the key belongs to that project"],
])("the error for a %i with the body %j says what to do", async (status, body, expected) => {
  const { read } = await serve(answering(status, body));
  await expect(read({ scopes: ["project:read", "usage:read"] })).rejects.toThrow(expected);
});

const transient = (count: number): ErrorCode[] => Array.from({ length: count }, () => "unavailable" as const);

test.each<[string, ErrorCode[], attemptsMax: number, askedMs: number, random: number, delayMs: number | undefined]>([
  ["the first failure waits up to half a second", transient(1), 5, 0, 1, 500],
  ["the fourth failure waits up to four seconds", transient(4), 5, 0, 1, 4_000],
  ["the random wait may be zero", transient(4), 5, 0, 0, 0],
  ["the back-off is at most thirty seconds", transient(20), 99, 0, 1, 30_000],
  ["no attempt follows the fifth failure", transient(ATTEMPTS_MAX), ATTEMPTS_MAX, 0, 1, undefined],
  ["no attempt follows a final failure after another failure", ["rate_limited", "unauthorized"], 5, 0, 1, undefined],
  ["another attempt follows a bad answer", ["bad_answer"], 5, 0, 1, 500],
  ["another attempt follows a bad answer after another failure", ["unavailable", "bad_answer"], 5, 0, 1, 1_000],
  ["no attempt follows a second bad answer later", ["bad_answer", "unavailable", "bad_answer"], 5, 0, 1, undefined],
  ["a longer wait that the service asks for is not shortened", transient(1), 5, 90_000, 0.5, 90_000],
  ["a requested wait of zero does not shorten the back-off", transient(2), 5, 0, 0.5, 500],
])("retryDelayMs: %s", (_name, failures, attemptsMax, askedMs, random, delayMs) => {
  expect(retryDelayMs(failures, attemptsMax, askedMs, random)).toBe(delayMs);
});

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
const DATE = "Sun, 01 Mar 2026 12:00:00 GMT";
const LATER = "Wed, 04 Mar 2026 12:00:00 GMT";

test.each<[string, ResponseHeaders, number | undefined]>([
  ["no header", {}, undefined],
  ["a number of seconds", { "retry-after": "31" }, 31_000],
  ["zero seconds", { "retry-after": "0" }, 0],
  ["blanks around the seconds", { "retry-after": " 7 " }, 7_000],
  ["a negative number is ignored", { "retry-after": "-5" }, undefined],
  ["a fraction is ignored", { "retry-after": "1.5" }, undefined],
  ["an empty header is ignored", { "retry-after": "" }, undefined],
  ["a date in another format is ignored", { "retry-after": "2026-03-01" }, undefined],
  ["a date that does not exist is ignored", { "retry-after": "Sun, 41 Mar 2026 12:00:00 GMT" }, undefined],
  ["a date in the future", { "retry-after": "Sun, 01 Mar 2026 12:00:30 GMT" }, 30_000],
  ["a date in the past is a wait of zero", { "retry-after": "Sun, 01 Mar 2026 11:00:00 GMT" }, 0],
  ["a date is compared with the Date", { date: LATER, "retry-after": "Wed, 04 Mar 2026 12:01:00 GMT" }, 60_000],
  ["an unreadable Date header is ignored", { date: "now", "retry-after": "Sun, 01 Mar 2026 12:00:09 GMT" }, 9_000],
  ["more than an hour is cut to an hour", { "retry-after": "3601" }, 3_600_000],
  ["a day is cut to an hour", { "retry-after": "86400" }, 3_600_000],
  ["more than a day is a mistake", { "retry-after": "86401" }, undefined],
  ["a date in 2099 is a mistake", { date: DATE, "retry-after": "Sun, 01 Mar 2099 12:00:00 GMT" }, undefined],
])("the requested wait: %s", (_name, headers, expected) => {
  expect(requestedWaitMs(headers, NOW_MS)).toBe(expected);
});
