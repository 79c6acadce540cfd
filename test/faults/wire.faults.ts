// Answers that are not HTTP, redirect or are cut: each fails only its own series, within the time limit of its attempts.

import { expect, test } from "vitest";
import { type ScriptedServer, scriptedServer } from "../support/scripted-server.ts";
import { TAKES_ALL } from "./scope.ts";
import { KEY, openSlots, slotOf, soundBody } from "./slots.ts";
import { tcpFront } from "./tcp-front.ts";
import { WIRE_FAULTS } from "./wire-faults.ts";

const NAMES = [...Object.keys(WIRE_FAULTS), "sound"];

test("a broken answer fails only its own series, and leaves the stored numbers", {
  timeout: 180_000,
}, async () => {
  let isHostile = false;
  await using server = await scriptedServer(({ target }, response) => {
    const name = slotOf(target);
    const body = soundBody(target, isHostile ? 2 : 1);
    const fault = isHostile ? WIRE_FAULTS[name ?? ""] : undefined;
    if (name === undefined) response.writeHead(404).end();
    else if (fault && response.socket) fault(response.socket, body);
    else response.writeHead(200, { "content-type": "application/json" }).end(body);
  });
  await using slots = await openSlots({ serviceUrl: server.origin, names: NAMES, service: { timeoutSeconds: 1 } });
  expect(await slots.run()).toMatchObject({ status: 0 });
  isHostile = true;

  const { status, stderr } = await slots.run();

  expect(status).toBe(1);
  const states = await slots.states();
  expect(states.get("sound")).toEqual({ status: "complete", error: null, requests: "2" });
  const spoiled = [...states].filter(
    ([name, state]) => name !== "sound" && (state.status !== "failed" || state.requests !== "1"),
  );
  expect(spoiled).toEqual([]);
  expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith('{"level"'))).toEqual([]);
});

const REDIRECTS: Readonly<Record<string, (own: string, other: string) => Readonly<Record<string, string>>>> = {
  "to another host": (_, other) => ({ location: `${other}/v1/projects/p1/usage/breakdown` }),
  "to the same host": (own) => ({ location: `${own}/v1/projects/p1/usage/breakdown` }),
  "to itself": () => ({ location: "" }),
  "without a host": () => ({ location: "/elsewhere" }),
  "without a scheme": (_, other) => ({ location: other.replace("http:", "") }),
  "to a name with the key in it": (_, other) => ({ location: `${other}/?key=${KEY}` }),
  "to the machine's own secrets": () => ({ location: "http://169.254.169.254/latest/meta-data/" }),
  "to a file": () => ({ location: "file:///etc/passwd" }),
  "by a refresh": (_, other) => ({ refresh: `0; url=${other}/` }),
  "to nowhere": () => ({}),
  "to what is no address": () => ({ location: "http://[::1" }),
};
const REDIRECT_STATUSES = [300, 301, 302, 303, 304, 305, 307, 308];
const REDIRECT_NAMES = REDIRECT_STATUSES.flatMap((status) => Object.keys(REDIRECTS).map((kind) => `${status} ${kind}`));

test("no redirect of any kind is followed, and no message about one contains the key", {
  timeout: 120_000,
}, async () => {
  await using other = await scriptedServer((_, response) => response.writeHead(200).end("{}"));
  await using server: ScriptedServer = await scriptedServer(({ target }, response) => {
    const [status = "404", ...kind] = slotOf(target)?.split(" ") ?? [];
    const headers = REDIRECTS[kind.join(" ")]?.(server.origin, other.origin) ?? {};
    response.writeHead(Number(status), headers).end(status === "304" ? undefined : "moved");
  });
  await using slots = await openSlots({ serviceUrl: server.origin, names: REDIRECT_NAMES });

  const { status, stdout, stderr } = await slots.run();

  expect({ status, connections: other.connections() }).toEqual({ status: 1, connections: 0 });
  const breakdowns = server.requests.filter(({ target }) => slotOf(target) !== undefined);
  expect(breakdowns).toHaveLength(REDIRECT_NAMES.length);
  const states = [...(await slots.states()).values()];
  expect(states.filter((state) => state.status !== "failed" || !/redirect/.test(state.error ?? ""))).toEqual([]);
  expect(JSON.stringify(states) + stdout + stderr).not.toContain(KEY);
});

/** After how many bytes an answer is cut: up to about its length with its headers. */
const CUTS = Array.from({ length: 640 }, (_, n) => n).filter((n) => TAKES_ALL || n % 5 === 0);

test("an answer cut after any of its bytes is never joined with the next one", { timeout: 300_000 }, async () => {
  let version = 0;
  const whole = new Map<string, string>();
  await using server = await scriptedServer(({ target }, response) => {
    const name = slotOf(target);
    if (name === undefined) return void response.writeHead(404).end();
    const stamp = String(1_000_000 + version++);
    const body = soundBody(target, Number(stamp)).replace("{", `{"padding":"${"x".repeat(250)}",`);
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": body.length,
      connection: "close",
    });
    const { socket } = response;
    response.end(body, () => {
      const limit = front.passageOf(socket?.remotePort ?? 0)?.cutAfterBytes ?? Number.POSITIVE_INFINITY;
      if (limit >= (socket?.bytesWritten ?? 0)) whole.set(name, stamp);
    });
  });
  await using front = await tcpFront(server.origin, (connection) => {
    const cutAfterBytes = CUTS[connection];
    if (cutAfterBytes === undefined) return {};
    return { cutAfterBytes, cutBy: connection % 2 === 0 ? "end" : "reset" };
  });
  const names = CUTS.map((n) => `slot ${n}`);
  await using slots = await openSlots({ serviceUrl: front.origin, names });

  await slots.run();
  const first = await slots.states();
  for (const name of names) expect([name, first.get(name)?.requests ?? undefined]).toEqual([name, whole.get(name)]);
  const { status } = await slots.run();

  expect(status).toBe(0);
  const last = await slots.states();
  for (const name of names) expect([name, last.get(name)?.requests]).toEqual([name, whole.get(name)]);
});

const SLOT_NAMES = Array.from({ length: 60 }, (_, n) => `slot ${n}`);

test("connections that are closed when they are used again, and answers in single bytes, do no harm", async () => {
  await using server = await scriptedServer(({ target, number }, response) => {
    if (slotOf(target) === undefined) return void response.writeHead(404).end();
    const body = soundBody(target, number);
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
  await using front = await tcpFront(server.origin, (connection) =>
    connection % 2 === 0 ? { resetAtWrite: 2 } : { pieceBytes: 1 },
  );
  await using slots = await openSlots({ serviceUrl: front.origin, names: SLOT_NAMES, service: { maxConcurrent: 4 } });

  expect(await slots.run()).toMatchObject({ status: 0 });
  expect([...(await slots.states()).values()].map(({ status }) => status)).toEqual(SLOT_NAMES.map(() => "complete"));
});
