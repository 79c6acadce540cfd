import type { App } from "../app.ts";
import { requireKnown } from "../config/messages.ts";
import { withDatabase } from "../database.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { keyStatuses, rotationRows, rotationStatus } from "../db/keys/status.ts";
import { needsAttention } from "../keys/plan.ts";
import { groupFinder, keysText } from "../show/keys.ts";

type KeysOptions = {
  readonly json?: boolean;
  readonly job?: readonly string[];
  readonly project?: readonly string[];
};

/** Exit status 1 while a rotation needs attention. */
export async function runKeys(app: App, { json, job, project }: KeysOptions): Promise<number> {
  const all = await withDatabase(app, (db) =>
    readSnapshot(db, async (tx) => ({
      keys: await keyStatuses(tx),
      rotations: (await rotationRows(tx)).map(rotationStatus),
    })),
  );
  const groupOf = groupFinder(all.keys);
  const nameOf = (rotation: string) => groupOf(rotation)?.group ?? rotation;
  requireKnown("--job", job, [...new Set(all.rotations.map(({ rotation }) => nameOf(rotation)))], noKeys);
  const projects = new Set(all.keys.flatMap((key) => [key.project, key.projectId]));
  requireKnown("--project", project, [...projects], noKeys);
  const keys = all.keys.filter(
    (key) =>
      (job?.includes(nameOf(key.rotation)) ?? true) &&
      (project === undefined || project.includes(key.project) || project.includes(key.projectId)),
  );
  const shown = new Set(keys.map(({ rotation }) => rotation));
  const rotations = all.rotations.filter(
    ({ rotation }) => (job?.includes(nameOf(rotation)) ?? true) && (project === undefined || shown.has(rotation)),
  );
  app.write(json ? `${JSON.stringify({ keys, rotations })}\n` : keysText(keys, rotations, groupOf));
  return rotations.some(({ failedAttempts }) => needsAttention(failedAttempts)) ? 1 : 0;
}

const noKeys = (name: string) => `the ledger has no keys of ${name}`;
