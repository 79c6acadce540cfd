import { expect, test } from "vitest";
import { type Emulator, type Fault, startEmulator } from "../support/emulator.ts";
import { ask, breakdown, CONSOLE_KEY, NOON } from "./ask.ts";

const start = (fault: Fault): Promise<Emulator> =>
  startEmulator({
    consoleKeys: [CONSOLE_KEY],
    now: () => NOON,
    usage: () => [{ endpoint: "listen", requests: 2 }],
    fault: () => fault,
  });

const DAYS = "start=2026-03-10&end=2026-03-11";
const QUERY = `usage/breakdown?${DAYS}`;
const NEW_KEY = { method: "POST", body: { comment: "exporter", scopes: ["member"] } };

test("an injected answer is sent with its status, headers and body, and the request has no effect", async () => {
  await using emulator = await start({ kind: "answer", status: 429, headers: { "retry-after": "7" }, body: "wait" });
  const response = await ask(emulator, "keys", NEW_KEY);
  expect(response.status).toBe(429);
  expect(response.headers.get("retry-after")).toBe("7");
  expect(response.headers.has("dg-request-id")).toBe(false);
  expect(await response.text()).toBe("wait");
  expect(emulator.keys()).toHaveLength(1);
});

test("a request whose answer is lost has its effect: the key is created, and nobody has its secret", async () => {
  await using emulator = await start({ kind: "lose" });
  await expect(ask(emulator, "keys", NEW_KEY)).rejects.toThrow("fetch failed");
  expect(emulator.keys()).toMatchObject([{ origin: "console" }, { origin: "created", comment: "exporter" }]);
  expect(emulator.requests).toMatchObject([{ status: undefined }]);
});

// A connection that is only left open would end by itself after 5 s.
test("a cut answer ends in its middle, at once", async () => {
  await using emulator = await start({ kind: "cut" });
  const response = await ask(emulator, QUERY);
  const received: Uint8Array[] = [];
  const reading = async () => {
    for await (const chunk of response.body ?? []) received.push(chunk);
  };
  const startedMs = performance.now();
  await expect(reading()).rejects.toThrow("terminated");
  expect(performance.now() - startedMs).toBeLessThan(4_500);
  const length = Number(response.headers.get("content-length"));
  expect(Buffer.concat(received).length).toBe(Math.floor(length / 2));
  expect(response.status).toBe(200);
});

test("a trickling answer arrives byte by byte, and complete", async () => {
  await using emulator = await start({ kind: "trickle", everyMs: 1 });
  const response = await ask(emulator, "/v1/projects");
  const chunks = await Array.fromAsync(response.body ?? []);
  expect(chunks.length).toBeGreaterThan(10);
  expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ projects: [{ project_id: "p1", name: "p1" }] });
});

test("a held answer has the numbers of the time of its request, and can arrive after a later one", async () => {
  const release = Promise.withResolvers<void>();
  let requests = 1;
  await using emulator = await startEmulator({ consoleKeys: [CONSOLE_KEY], usage: () => [{ requests }] });
  const held = new Promise<void>((resolve) => {
    emulator.fault = () => {
      resolve();
      return { kind: "hold", until: release.promise };
    };
  });
  const first = breakdown(emulator, DAYS);
  await held;
  emulator.fault = undefined;
  requests = 2;
  const second = await breakdown(emulator, DAYS);
  release.resolve();
  const late = await first;
  expect([second.results[0]?.requests, late.results[0]?.requests]).toEqual([2, 1]);
});

test("a fault plan can choose requests by method and path", async () => {
  await using emulator = await startEmulator({ consoleKeys: [CONSOLE_KEY] });
  emulator.fault = ({ method, path }) =>
    method === "GET" && path.includes("grouping=tags") ? { kind: "answer", status: 503 } : undefined;
  expect((await ask(emulator, "usage/breakdown?grouping=tags")).status).toBe(503);
  expect((await ask(emulator, "usage/breakdown?grouping=model")).status).toBe(200);
  expect(emulator.requests.map(({ status }) => status)).toEqual([503, 200]);
});
