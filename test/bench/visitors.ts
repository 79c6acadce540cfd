// Many visitors of a worker that exports: 200 clients that ask for pages again and again, first for 7 URLs and then for 20, and 50 that read
// one byte a second. What the worker still exports, what it takes of memory, and how long a visitor and a health check wait. Linux only,
// because it reads /proc.

import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { type Program, startScript } from "../support/program.ts";
import { openConfigFolder } from "./config-folder.ts";
import type { NewDatabase } from "./figures.ts";
import { configOf, KEY } from "./pipeline.ts";
import { prepareDatabase } from "./prepared-database.ts";
import { builtProgram } from "./processes.ts";
import { type Service, startService } from "./service.ts";
import { storeSlices } from "./stored-slices.ts";

const CLIENTS = 200;
const SLOW_READERS = 50;
const PHASE_MS = Number(process.env.VISITORS_MS ?? 60_000);
/** Enough requests for all phases, at a rate that a worker keeps up with. */
const WORKLOAD = { projects: 20, filters: 50, days: 1, cap: 16 };
const REQUESTS_PER_SECOND = 15;
const ROWS = 50;
const DAYS_STORED = 30;

/** Of one page with different periods, and of all pages. */
const FEW_URLS = [1, 2, 3, 4, 5, 6, 7].map((weeks) => `/?days=${weeks * 7}`);
const MANY_URLS = [
  ...["/jobs", "/keys"],
  ...[7, 14, 30].flatMap((days) => ["/", "/cost", "/quality"].map((path) => `${path}?days=${days}`)),
  ...["tags", "model", "accessor"].flatMap((grouping) =>
    [0, 1].map((filter) => `/usage?grouping=${grouping}&filter=filter-${filter}`),
  ),
  ...[1, 2, 3].map((project) => `/?project=project-${project}`),
];

type Phase = { readonly exportedPerSecond: number; readonly memoryMb: number; readonly openFiles: number };

export async function measureVisitors(newDatabase: NewDatabase): Promise<string[]> {
  const program = await builtProgram();
  await using service = await startService({ rows: ROWS, latencyMs: 20 });
  const base = configOf(service.url, WORKLOAD) as { readonly service: object };
  const limited = { ...base.service, requestsPerSecond: REQUESTS_PER_SECOND };
  const config = { ...base, service: limited, monitor: { port: 0 } };
  await using folder = await openConfigFolder(config);
  const url = await newDatabase();
  await using prepared = await prepareDatabase(url, config);
  // What is exported is the newest day of the page.
  await storeSlices(prepared.db, { days: DAYS_STORED, there: sql`back > 1` });
  const env = { DATABASE_URL: url, LOG_LEVEL: "info", KEY };
  const options = { cwd: folder.folder, env, timeoutMs: 5 * PHASE_MS + 300_000 };
  await using worker = startScript(program, ["start"], options);
  const line = await worker.waitFor("monitor listens");
  const address = new URL(/http:\/\/[^"\s]+/.exec(line)?.[0] ?? "");
  await worker.waitFor("worker started");
  // Yesterday is missing: the first tick has it read.
  while ((await service.asked()).count === 0) await sleep(100);
  // The first page loads the charts.
  const first = await fetch(address);
  if (first.status !== 200) throw new Error(await first.text());
  await first.text();
  await sleep(5_000);

  const idle = await phaseOf(worker, service);
  const few = await visitedPhase(FEW_URLS, { address, worker, service });
  const many = await visitedPhase(MANY_URLS, { address, worker, service });
  const after = await phaseOf(worker, service);
  const phase = (name: string, { exportedPerSecond, memoryMb, openFiles }: Phase) =>
    `  ${name.padEnd(36)}${exportedPerSecond.toFixed(1).padStart(7)} exported/s ${String(Math.round(memoryMb)).padStart(6)} MB ${String(openFiles).padStart(4)} open files`;
  const visits = ({ answers, waits, checks }: Visits) => [
    `    answers: ${[...answers].map(([status, count]) => `${count} × ${status}`).join(", ")}`,
    `    a visitor waits ${spread(waits)}; a health check ${spread(checks)}`,
  ];
  return [
    `a worker that may export ${REQUESTS_PER_SECOND} requests a second, and its dashboard, ${PHASE_MS / 1_000} s each:`,
    phase("nobody looks", idle),
    phase(`${CLIENTS} clients of ${FEW_URLS.length} URLs, ${SLOW_READERS} slow readers`, few.phase),
    ...visits(few),
    phase(`${CLIENTS} clients of ${MANY_URLS.length} URLs, ${SLOW_READERS} slow readers`, many.phase),
    ...visits(many),
    phase("nobody looks any more", after),
  ];
}

type Visits = {
  readonly phase: Phase;
  /** How often each status, or kind of failure, came. */
  readonly answers: ReadonlyMap<string, number>;
  readonly waits: readonly number[];
  readonly checks: readonly number[];
};

type Visited = { readonly address: URL; readonly worker: Program; readonly service: Service };

async function visitedPhase(urls: readonly string[], { address, worker, service }: Visited): Promise<Visits> {
  const answers = new Map<string, number>();
  const waits: number[] = [];
  const checks: number[] = [];
  const until = performance.now() + PHASE_MS;
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const visitors = [
    ...Array.from({ length: CLIENTS }, (_, client) => visit({ address, urls, client, agent, until, answers, waits })),
    ...Array.from({ length: SLOW_READERS }, () => readSlowly(address, until)),
    checkHealth(address, until, checks),
  ];
  const phase = await phaseOf(worker, service);
  await Promise.all(visitors);
  agent.destroy();
  return { phase, answers, waits, checks };
}

/** Exports a second, the most memory that was resident, and the open files at the end: a connection is one. */
async function phaseOf(worker: Program, service: Service): Promise<Phase> {
  await service.asked();
  const startedMs = performance.now();
  let memoryMb = 0;
  while (performance.now() - startedMs < PHASE_MS) {
    const status = await readFile(`/proc/${worker.pid}/status`, "utf8");
    memoryMb = Math.max(memoryMb, Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    await sleep(250);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const openFiles = (await readdir(`/proc/${worker.pid}/fd`)).length;
  return { exportedPerSecond: (await service.asked()).count / seconds, memoryMb, openFiles };
}

type Client = {
  readonly address: URL;
  readonly urls: readonly string[];
  /** Each begins with another URL. */
  readonly client: number;
  readonly agent: Agent;
  readonly until: number;
  readonly answers: Map<string, number>;
  readonly waits: number[];
};

async function visit({ address, urls, client, agent, until, answers, waits }: Client): Promise<void> {
  for (let visits = client; performance.now() < until; visits++) {
    const startedMs = performance.now();
    const status = await statusOf(new URL(urls[visits % urls.length] ?? "/", address), agent);
    answers.set(status, (answers.get(status) ?? 0) + 1);
    waits.push(performance.now() - startedMs);
    // A browser that is told to come again later does.
    if (status !== "200") await sleep(1_000);
  }
}

async function statusOf(url: URL, agent: Agent | false): Promise<string> {
  try {
    const signal = AbortSignal.timeout(120_000);
    const [response] = await once(get(url, { agent, signal, headers: { "accept-encoding": "gzip" } }), "response");
    response.resume();
    await once(response, "end");
    return String(response.statusCode);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "failed";
  }
}

/** Asks for the page uncompressed, which is some hundred kilobytes, again and again. */
async function readSlowly(address: URL, untilMs: number): Promise<void> {
  while (performance.now() < untilMs) {
    const socket = net.connect({ port: Number(address.port), host: address.hostname });
    const closed = once(socket, "close");
    socket.on("error", () => {}).pause();
    socket.write(`GET / HTTP/1.1\r\nHost: ${address.host}\r\n\r\n`);
    const timer = setInterval(() => socket.read(1), 1_000);
    // A paused socket is not told of its end while it has bytes to read.
    await Promise.race([closed, sleep(Math.max(untilMs - performance.now(), 1))]);
    clearInterval(timer);
    socket.destroy();
  }
}

async function checkHealth(address: URL, untilMs: number, took: number[]): Promise<void> {
  while (performance.now() < untilMs) {
    const startedMs = performance.now();
    const status = await statusOf(new URL("/livez", address), false);
    if (status !== "200") throw new Error(`a health check got ${status}`);
    took.push(performance.now() - startedMs);
    await sleep(500);
  }
}

function spread(ms: readonly number[]): string {
  const sorted = [...ms].sort((a, b) => a - b);
  const at = (share: number) => `${Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)} ms`;
  return `${at(0.5)} at the median, ${at(0.95)} at the 95th percentile, ${at(1)} at most`;
}
