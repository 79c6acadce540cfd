// Sabotages of the calls to the service.

import type { Sabotage } from "./sabotage.ts";

export const SERVICE: readonly Sabotage[] = [
  {
    name: "the service's certificate is not checked behind a proxy",
    file: "src/proxy-agent.ts",
    replace: "requestTls: tls,",
    by: "requestTls: { rejectUnauthorized: false },",
    caughtBy: [
      "test/service/proxy.test.ts",
      "a proxy that intercepts TLS with its own certificate gets no request, with NODE_TLS_REJECT_UNAUTHORIZED",
    ],
  },
  {
    name: "a create is sent again when it has no answer",
    file: "src/service/keys.ts",
    replace: "retry: false",
    by: "retry: true",
    caughtBy: [
      "test/service/create-key.test.ts",
      "after a lost connection a key may have been made, and nothing is sent again",
    ],
  },
  {
    name: "a create whose answer was lost counts as not made",
    file: "src/service/errors.ts",
    replace: `isBeforeSending(error) ? { sent: "no" } : {}`,
    by: `isBeforeSending(error) || connectionErrorCode(error) !== "" ? { sent: "no" } : {}`,
    caughtBy: [
      "test/service/create-key.test.ts",
      "after a lost connection a key may have been made, and nothing is sent again",
    ],
  },
  {
    name: "a redirect is followed, with the key",
    file: "src/service/client.ts",
    replace: "if (reply.status >= 300 && !bodiless",
    by: `const to = reply.status < 400 ? reply.headers.location : undefined;
  if (typeof to === "string" && URL.canParse(to)) {
    const { origin, pathname } = new URL(to);
    reply = await exchange(agent, { ...options, origin, path: pathname }, limit);
  }
  if (reply.status >= 300 && !bodiless`,
    caughtBy: ["test/service/client.test.ts", "a 301 to http://other.example/x?key=1 is never followed"],
  },
  {
    name: "certificates are not checked",
    file: "src/proxy-agent.ts",
    replace: "connect: { rejectUnauthorized: true }",
    by: "connect: { rejectUnauthorized: false }",
    caughtBy: ["test/service/connection.test.ts", "a self-signed certificate ends the call"],
  },
  {
    name: "partial content is taken for the whole answer",
    file: "src/service/answer.ts",
    replace: "if (status === 206)",
    by: "if (status === 207)",
    caughtBy: ["test/service/answer.test.ts", "a 206 is a bad answer, even if its body is valid JSON"],
  },
  {
    name: "bytes that are not UTF-8 are replaced instead of refused",
    file: "src/service/answer.ts",
    replace: "fatal: true",
    by: "fatal: false",
    caughtBy: ["test/service/answer.test.ts", "a success with a byte that is not UTF-8"],
  },
  {
    name: "a page of a gateway is read as an answer",
    file: "src/service/answer.ts",
    replace: "/^application\\/(?:[\\w.+-]+\\+)?json$/i",
    by: "/^(?:application|text)\\//i",
    caughtBy: ["test/service/answer.test.ts", "a success with JSON sent as text/html is a bad answer"],
  },
  {
    name: "Retry-After is not read",
    file: "src/service/errors.ts",
    replace: "isTransient(status) ? requestedWait(status, headers, nowMs) : undefined",
    by: "requestedWait(status, {}, nowMs)",
    caughtBy: [
      "test/service/attempts.test.ts",
      "after a 429 with a number of seconds in Retry-After the next attempt starts exactly when the wait ends",
    ],
  },
  {
    name: "Retry-After is shortened to what the program would wait by itself",
    file: "src/service/retry.ts",
    replace: "Math.max(requestedWaitMs ?? 0, Math.round(ceilingMs * random))",
    by: "Math.min(requestedWaitMs ?? ceilingMs, Math.round(ceilingMs * random))",
    caughtBy: ["test/service/retry.test.ts", "a longer wait that the service asks for is not shortened"],
  },
  {
    name: "a Retry-After of any length is waited",
    file: "src/service/retry.ts",
    replace: "Math.min(waitMs, WAIT_MS_MAX)",
    by: "waitMs",
    caughtBy: ["test/service/retry-after.test.ts", "more than an hour is cut to an hour"],
  },
  {
    name: "a call is tried without end",
    file: "src/service/retry.ts",
    replace: ` || failures.length >= attemptsMax`,
    by: "",
    caughtBy: ["test/service/retry.test.ts", "no attempt follows the fifth failure"],
  },
  {
    name: "four times as many calls at once as allowed",
    file: "src/service/rate-limiter.ts",
    replace: "this.#inFlight >= slots",
    by: "this.#inFlight >= 4 * slots",
    caughtBy: [
      "test/service/rate-limiter.test.ts",
      "at most maxConcurrent calls run at once, and the others start in order",
    ],
  },
  {
    name: "a refused key is tried with every call of a run",
    file: "src/service/auth-failures.ts",
    replace: "refused.push({ use, error });",
    by: "",
    caughtBy: [
      "test/service/auth-failures.test.ts",
      "a refused key is sent once, however many calls start at once, and the others take no permit",
    ],
  },
  {
    name: "an error shows a key that the service's answer contains",
    file: "src/service/errors.ts",
    replace: `return isFreeOfSecret(hidden, key.reveal()) ? hidden : "(not shown, as it may hold the key)";`,
    by: "return hidden;",
    caughtBy: ["test/service/error-body.test.ts", "the key in use is hidden: octal escapes"],
  },
  {
    name: "an id with dots can lead out of its project",
    file: "src/service/answer.ts",
    replace: "/^[A-Za-z0-9_-]{1,128}$/",
    by: "/^[A-Za-z0-9_.-]{1,128}$/",
    caughtBy: ["test/service/keys.test.ts", "is refused before anything is sent"],
  },
  {
    name: "a pause that the service asks of one key stops the calls with every key",
    file: "src/service/attempts.ts",
    replace: "deps.limits.pause(isAboutKey ? key : undefined,",
    by: "deps.limits.pause(isAboutKey ? undefined : key,",
    caughtBy: ["test/service/key-limits.test.ts", "a 429 to one key pauses that key alone"],
  },
  {
    name: "requests of paused keys fill the backlog",
    file: "src/usage/backlog.ts",
    replace: "if (owner.isPaused()) waiting += count;",
    by: "if (owner.roomMax === 0) waiting += count;",
    caughtBy: ["test/usage/export.test.ts", "requests that wait because their keys were paused after their start"],
  },
  {
    name: "a fetch keeps the number from before it waited for its permit",
    file: "src/usage/export.ts",
    replace: `    attempt = await nextAttempt();
    isAsked = true;`,
    by: "    isAsked = true;",
    caughtBy: [
      "test/usage/export.test.ts",
      "an answer is stored with the fetch number that was taken when its last attempt had its permit",
    ],
  },
  {
    name: "fetch numbers that were taken in advance are used at any age",
    file: "src/db/usage/fetch-numbers.ts",
    replace: "ageMs <= VALID_MS ?",
    by: "ageMs <= VALID_MS * 1000 ?",
    caughtBy: ["test/db/usage/fetch-numbers.test.ts", "a spare number is used for 50 ms"],
  },
  {
    name: "a renewal of the lease ends the pause that the service asked for meanwhile",
    file: "src/service/rate-lease.ts",
    replace: "if (pauseReportedMs < askedMs) local.setPause(pauseMs);",
    by: "local.setPause(pauseMs);",
    caughtBy: [
      "test/service/rate-lease.test.ts",
      "a pause is stored before the lease is renewed, and a renewal requested before the pause does not end it",
    ],
  },
  {
    name: "a process goes on calling after its lease ended",
    file: "src/service/rate-limiter.ts",
    replace: "slots === 0 || untilMs <= nowMs",
    by: "slots === 0",
    caughtBy: [
      "test/service/rate-lease.test.ts",
      "a process that can't renew its lease starts no call in the lease's last two seconds",
    ],
  },
  {
    name: "a suspended process sends the calls that it had prepared",
    file: "src/service/rate-limiter.ts",
    replace: "shareNumber === this.#shareNumber && this.#now() < this.#share.untilMs",
    by: "shareNumber <= this.#shareNumber",
    caughtBy: ["test/service/rate-lease.test.ts", "a suspended process starts no call before it has renewed its lease"],
  },
  {
    name: "every process has a rate of its own",
    file: "src/service/rate-limiter.ts",
    replace: "(1000 * maxConcurrent) / (requestsPerSecond * this.#share.slots)",
    by: "(1000 * maxConcurrent) / (requestsPerSecond * maxConcurrent)",
    caughtBy: ["test/service/rate-limiter.test.ts", "a process with a quarter of the slots has a quarter of the rate"],
  },
  {
    name: "two processes that lease at the same moment get the same slots",
    file: "src/db/rate-limit.ts",
    replace: "and leases = $",
    by: "and 'null' <> $",
    caughtBy: ["test/db/rate-limit.test.ts", "processes that ask at the same moment get no more than the cap together"],
  },
  {
    name: "a process keeps slots that another needs",
    file: "src/db/rate-limit.ts",
    replace: "usableSlots: isContested ? Math.min(slots, fairSlots) : slots",
    by: "usableSlots: slots",
    caughtBy: [
      "test/db/rate-limit.test.ts",
      "a new process gets nothing until the first one has given back what exceeds the fair share of the first",
    ],
  },
  {
    name: "an answer that does not fit the dialect of its request is accepted",
    file: "src/jobs/request-deps.ts",
    replace: "isFit: dialects.fits(request, answer) && doubt === undefined",
    by: "isFit: doubt === undefined",
    caughtBy: ["test/cli/service/dialect.test.ts", "a service that changes its dialect is detected by its answers"],
  },
  {
    name: "the default dialect is used, whatever the service speaks",
    file: "src/jobs/dialects.ts",
    replace: "if (found !== undefined) return found;",
    by: "if (found !== undefined) return DEFAULT_DIALECT;",
    caughtBy: [
      "test/cli/service/dialect.test.ts",
      "after one probe, every run calls a service of dialect interface in its dialect",
    ],
  },
];
