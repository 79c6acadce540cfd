// How often an export asks the database: statements and round trips for each usage request. The fewer, the less a distant database costs.

import type { EventEmitter } from "node:events";
import pg from "pg";
import type { NewDatabase } from "./figures.ts";
import { configOf, GROUPINGS, withPipeline } from "./pipeline.ts";
import { startService } from "./service.ts";

const SIZE = { rows: 50, projects: 100, days: 1, cap: 16 };
const PERCENT_CHANGED = 5;

export async function measureRoundTrips(newDatabase: NewDatabase): Promise<string[]> {
  const requests = SIZE.projects * GROUPINGS.length;
  await using service = await startService({ rows: SIZE.rows, latencyMs: 0 });
  const count = countStatements();
  return await withPipeline(configOf(service.url, SIZE), await newDatabase(), async (exportAll) => {
    const lines = [`${requests} requests of ${SIZE.rows} rows, cap ${SIZE.cap}; statements and round trips for each:`];
    const steps = [
      { what: "new rows", percentChanged: 0 },
      { what: "unchanged", percentChanged: 0 },
      { what: `${PERCENT_CHANGED} % changed`, percentChanged: PERCENT_CHANGED },
    ];
    for (const { what, percentChanged } of steps) {
      await service.change(percentChanged);
      count.statements = 0;
      count.roundTrips = 0;
      await exportAll();
      const each = [count.statements, count.roundTrips].map((n) => (n / requests).toFixed(2).padStart(8));
      lines.push(`  ${what.padEnd(20)}${each.join("")}`);
    }
    return lines;
  });
}

/** From now on, counts what all connections of this process send. The driver waits for each answer before it sends more. */
function countStatements(): { statements: number; roundTrips: number } {
  const count = { statements: 0, roundTrips: 0 };
  const { connect } = pg.Client.prototype;
  Reflect.set(pg.Client.prototype, "connect", function (this: pg.Client, ...args: unknown[]) {
    const connection: EventEmitter = Reflect.get(this, "connection");
    connection.on("commandComplete", () => count.statements++);
    connection.on("readyForQuery", () => count.roundTrips++);
    return Reflect.apply(connect, this, args);
  });
  return count;
}
