// Looks whether a replaced key is still used, by the breakdown by accessor.

import { fetchBreakdown } from "../api/breakdown.ts";
import type { Service } from "../api/http.ts";
import { listKeys } from "../api/keys.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { SeenInUse } from "../keys/rotation-deps.ts";
import { addDays, type Day } from "../usage/day.ts";
import { normalise } from "../usage/normalise.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/plan.ts";
import type { KeyRing } from "./keys-in-use.ts";

export type Look = {
  readonly service: Service;
  readonly keys: KeyRing;
  readonly job: RotationJob;
  readonly key: LedgerKey;
  readonly today: Day;
  readonly signal: AbortSignal;
};

/** "seen" counts usage of the days of grace, today with them, of which the first may be from before it was replaced. */
export async function seenInUse({ service, keys, job, key, today, signal }: Look): Promise<SeenInUse> {
  const days = Math.min(Math.max(job.graceDays, 1), REQUEST_DAYS_MAX - 1);
  const request: UsageRequest = {
    series: { project: job.project, grouping: "accessor", filter: { name: "all", features: {}, dimensions: {} } },
    window: { start: addDays(today, -days), end: today },
  };
  try {
    const [answer, listed] = await Promise.all([
      keys.use(job.project, (caller) => fetchBreakdown(service, request, caller, signal)),
      keys.use(job.project, (caller) => listKeys(service, job.project.id, caller, signal)),
    ]);
    const rows = normalise(request, answer, today).flatMap(({ day, rows: ofDay }) =>
      ofDay.map((row) => ({ day, row })),
    );
    const used = rows.filter(({ row }) => row.metrics.values.some((value) => value !== null && value !== "0"));
    const last = used.filter(({ row }) => row.group.display === key.apiKeyId).at(-1);
    if (last) return { seen: "yes", text: `the breakdown by accessor shows usage on ${last.day}` };
    // Only where an accessor is the id of some key does its absence mean anything.
    const known = new Set(listed?.map(({ apiKeyId }) => apiKeyId));
    return used.some(({ row }) => row.group.display !== null && known.has(row.group.display))
      ? { seen: "no", text: `the breakdown by accessor shows no usage since ${request.window?.start}` }
      : { seen: "unknown", text: "by its age alone: the breakdown by accessor does not tell which key is which" };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    return {
      seen: "unknown",
      text: `by its age alone: the breakdown by accessor could not be read: ${errorText(error)}`,
    };
  }
}
