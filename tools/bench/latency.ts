// How long a run takes besides waiting for the service: 2,000 requests of 20 ms each, compared with only requesting and parsing.

import { Agent, request } from "undici";
import { median, type NewDatabase, ratio, secondsOf } from "./figures.ts";
import { configOf, GROUPINGS, withPipeline } from "./pipeline.ts";
import { startService } from "./service.ts";

const WORKLOAD = { projects: 25, filters: 20, days: 1, cap: 16 };
const REQUESTS = WORKLOAD.projects * WORKLOAD.filters * GROUPINGS.length;
const LATENCY_MS = 20;
const ROUNDS = 3;

export async function measureLatency(newDatabase: NewDatabase): Promise<string[]> {
  await using service = await startService({ rows: 50, latencyMs: LATENCY_MS });
  const alone: number[] = [];
  const whole: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    alone.push(await secondsOf(() => askAndParse(service.url)));
    const config = configOf(service.url, WORKLOAD);
    whole.push(await withPipeline(config, await newDatabase(), (exportAll) => secondsOf(exportAll)));
  }
  const least = (REQUESTS * LATENCY_MS) / WORKLOAD.cap / 1_000;
  const line = (what: string, seconds: number) =>
    `  ${what.padEnd(32)} ${seconds.toFixed(2).padStart(6)} s ${ratio(seconds, median(alone))} of asking and parsing ${ratio(seconds, least)} of latency ÷ cap`;
  return [
    `${REQUESTS} requests at ${LATENCY_MS} ms of latency and a cap of ${WORKLOAD.cap}:`,
    line("asking and parsing alone", median(alone)),
    line("export of new rows", median(whole)),
  ];
}

async function askAndParse(service: string): Promise<void> {
  const agent = new Agent({ connections: WORKLOAD.cap });
  const queue = Array.from({ length: REQUESTS }, (_, i) => i).values();
  const work = async () => {
    for (const i of queue) {
      const project = `project-${i % WORKLOAD.projects}`;
      const grouping = GROUPINGS[Math.floor(i / WORKLOAD.projects) % GROUPINGS.length];
      const url = `${service}/v1/projects/${project}/usage/breakdown?grouping=${grouping}`;
      const { body } = await request(url, { dispatcher: agent });
      JSON.parse(await body.text());
    }
  };
  await Promise.all(Array.from({ length: WORKLOAD.cap }, work));
  await agent.destroy();
}
