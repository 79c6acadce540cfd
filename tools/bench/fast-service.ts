// A program: a service that answers breakdowns as fast as possible, so that a benchmark measures its client. Each answer is made once
// and kept. Arguments: rows in an answer, latency in ms. Prints its address. After `POST /changed?percent=5`, that share of the rows
// of each answer has other numbers. `GET /asked` answers how many breakdowns were requested since the last such call, and the sum of the
// `requests` in their answers.

import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { addDays, daysOf } from "../../src/usage/days.ts";

const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "model", "method", "tags"];
const LISTS = ["feature_set", "tags"];
const [rowsPerAnswer = 50, latencyMs = 0] = process.argv.slice(2).map(Number);

type Answer = { readonly body: Buffer; readonly requests: number };

const answers = new Map<string, Answer>();
let percentChanged = 0;
let asked = 0;
let requestsAnswered = 0;
let firstAskedMs = 0;

function answer(url: URL): Answer {
  // Without a window the service chooses yesterday.
  const start = url.searchParams.get("start") ?? addDays(new Date().toISOString().slice(0, 10), -1);
  const end = url.searchParams.get("end") ?? start;
  const key = `${percentChanged} ${url.pathname} ${start} ${end} ${url.searchParams.get("grouping")}`;
  const kept = answers.get(key);
  if (kept !== undefined) return kept;
  const content = breakdown({ start, end }, url.searchParams.get("grouping"), requestsOf(url.pathname));
  const made = {
    body: Buffer.from(JSON.stringify(content)),
    requests: content.results.reduce((sum, { requests }) => sum + requests, 0),
  };
  answers.set(key, made);
  return made;
}

/** The number of requests, which differs between projects. */
function requestsOf(path: string): number {
  return 373_381 + (Number.parseInt(hash("sha256", path).slice(0, 6), 16) % 1_000);
}

/** The rows are spread evenly over the days. */
function breakdown({ start, end }: { start: string; end: string }, grouping: string | null, requests: number) {
  const days = daysOf({ start, end });
  const groups = Math.max(1, Math.round(rowsPerAnswer / days.length));
  const results = days.flatMap((day, dayNo) =>
    Array.from({ length: groups }, (_, i) => ({
      hours: i + 0.7242069444,
      total_hours: i + 0.7395791667,
      agent_hours: 0,
      tokens_in: 0,
      tokens_out: 0,
      tts_characters: 9_158_866 + i,
      requests: requests + ((i * 37 + dayNo) % 100 < percentChanged ? 1 : 0),
      grouping: {
        start: day,
        end: day,
        ...Object.fromEntries(DIMENSIONS.map((name) => [name, name === grouping ? groupValue(name, i) : null])),
      },
    })),
  );
  return { start, end, resolution: { units: "day", amount: 1 }, results };
}

function groupValue(dimension: string, i: number): string | readonly string[] {
  const value = `${dimension}-${i}-3f2504e0`;
  return LISTS.includes(dimension) ? [value] : value;
}

const server = http.createServer(async (request, response) => {
  const url = new URL(request.url ?? "", "http://127.0.0.1");
  if (request.method === "POST" && url.pathname === "/changed") {
    percentChanged = Number(url.searchParams.get("percent"));
    response.end();
    return;
  }
  if (url.pathname === "/asked") {
    response.end(
      JSON.stringify({ count: asked, requests: requestsAnswered, firstMsAgo: performance.now() - firstAskedMs }),
    );
    asked = 0;
    requestsAnswered = 0;
    return;
  }
  if (!url.pathname.endsWith("/usage/breakdown")) return void response.writeHead(404).end("{}");
  if (asked++ === 0) firstAskedMs = performance.now();
  const { body, requests } = answer(url);
  requestsAnswered += requests;
  if (latencyMs > 0) await sleep(latencyMs);
  const headers = { "content-type": "application/json", "content-length": body.length, "dg-request-id": randomUUID() };
  response.writeHead(200, headers).end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("the service has no port");
process.stdout.write(`http://127.0.0.1:${address.port}\n`);
