// Sabotages of schedules, ticks, runs and the queue.

import type { Sabotage } from "./sabotage.ts";

export const WORKER: readonly Sabotage[] = [
  {
    name: "a time that clocks show twice as they are set back is run twice",
    file: "src/schedule/cron.ts",
    replace: "new Set(fields.hour).size === 24",
    by: "new Set(fields.hour).size > 0",
    caughtBy: ["test/schedule/occurrences.test.ts", "in Europe/Vienna a time that comes twice"],
  },
  {
    name: "a scheduled time is run again at every tick",
    file: "src/schedule/plan-tick.ts",
    replace: "latest <= state.scheduledThrough",
    by: "latest < state.scheduledThrough",
    caughtBy: ["test/schedule/plan-tick.test.ts", "a scheduled time that was run or skipped is not run again"],
  },
  {
    name: "a scheduled time that no worker handled is left out",
    file: "src/schedule/plan-tick.ts",
    replace: `const trigger = now.getTime() - until.getTime() > LATE_MS ? "catchup" : "schedule";`,
    by: `const trigger = "schedule";
  if (now.getTime() - until.getTime() > LATE_MS) return { kind: "none" };`,
    caughtBy: ["test/schedule/plan-tick.test.ts", "a job runs hours after it, triggered by catchup"],
  },
  {
    name: "days before the window that are missing are not read",
    file: "src/worker/tick.ts",
    replace: "(planned === undefined || slice.day < planned.oldest.start)",
    by: "planned !== undefined && slice.day >= planned.oldest.start",
    caughtBy: ["test/cli/start/start.test.ts", "deleted slices are read again before the next scheduled run"],
  },
  {
    name: "a refused slice is requested again every minute",
    file: "src/usage/backfill.ts",
    replace: `if (status === "missing" || attemptedAt === null) return true;`,
    by: `if (status === "missing" || attemptedAt === null || failures > 0) return true;`,
    caughtBy: ["test/usage/catch-up.test.ts", "after 3 failures in a row a slice is retried after 4 hours"],
  },
  {
    name: "a run forgets that one of its requests failed before the last",
    file: "src/db/jobs/runs.ts",
    replace: " + slices_failed + ",
    by: " + 0 * slices_failed + ",
    caughtBy: ["test/db/jobs/shared-runs.test.ts", "a run fails if a slice fails"],
  },
  {
    name: "the requests of a chunk that were answered are made again if its worker ends",
    file: "src/db/jobs/queued-requests.ts",
    replace: "delete from usage_export.queued_request",
    by: "update usage_export.queued_request set position = position",
    caughtBy: [
      "test/cli/recovery/chunks.test.ts",
      "another worker takes up the chunk of a killed one within 40 seconds, and repeats only the requests",
    ],
  },
  {
    name: "a worker goes on with a chunk that another one has claimed meanwhile",
    file: "src/worker/handle-chunk.ts",
    replace: "if (closed.length < final.size) lost.abort();",
    by: "",
    caughtBy: [
      "test/cli/recovery/chunks.test.ts",
      "a suspended worker that wakes up beside the one that has its chunk",
    ],
  },
  {
    name: "a scheduled time that was run before the clock was set back is not run again",
    file: "src/db/recovery.ts",
    replace: "set scheduled_through = null where",
    by: "set scheduled_through = scheduled_through where",
    caughtBy: [
      "test/cli/recovery/clock-steps.test.ts",
      "a worker whose database's clock went back starts the run that is due by that clock, and logs the change once",
    ],
  },
  {
    name: "a list of projects that hangs holds up the worker",
    file: "src/worker/projects.ts",
    replace: "void read();",
    by: "await read();",
    caughtBy: [
      "test/cli/start/discovery.test.ts",
      "a worker ticks while the list of projects hangs, and takes it up when it comes",
    ],
  },
  {
    name: "an older list of projects replaces a newer one",
    file: "src/db/projects.ts",
    replace: "if (last !== undefined && last >= readAt) return undefined;",
    by: "if (last !== undefined && last.getTime() === readAt.getTime()) return undefined;",
    caughtBy: ["test/db/projects.test.ts", "a list that was read before the stored one changes nothing"],
  },
  {
    name: "a list of projects whose second page can't be read counts as whole",
    file: "src/service/projects.ts",
    replace: "= await fetchPage(service, page, key, { signal, pageSecondsMax });",
    by: `= await fetchPage(service, page, key, { signal, pageSecondsMax }).catch((error) => {
      if (page === undefined) throw error;
      return { projects: [], page, limit: undefined };
    });`,
    caughtBy: [
      "test/cli/export/discovery.test.ts",
      "a list that is cut in the middle of a page, or not readable, leaves the projects as they were",
    ],
  },
  {
    name: "a project that is renamed takes over the name of another one",
    file: "src/config/discovered.ts",
    replace: "namedOf(a) - namedOf(b) ||",
    by: "a.found.firstSeenAt.getTime() - b.found.firstSeenAt.getTime() ||",
    caughtBy: [
      "test/config/discovery.test.ts",
      "a project that is renamed to the name of another one does not take it over",
    ],
  },
  {
    name: "projects are not listed when only their rotations are due",
    file: "src/worker/projects.ts",
    replace: "one.projects !== undefined && isSinceThen(one)",
    by: "one.projects === undefined && isSinceThen(one)",
    caughtBy: [
      "test/cli/rotation/discovered.test.ts",
      "without an export, the projects are listed when their rotation is due",
    ],
  },
  {
    name: "requests of a project that a worker does not know yet fail",
    file: "src/worker/handle-chunk.ts",
    replace: "return ids.has(id) ? []",
    by: "return ids.size > 0 ? []",
    caughtBy: [
      "test/cli/start/discovery.test.ts",
      "a project that another process has found is read at once by a worker that does not know it yet",
    ],
  },
  {
    name: "a changed configuration cuts off the requests in flight",
    file: "src/worker/worker.ts",
    replace: "if (!app.signal.aborted) await waitWhileRunning(",
    by: "if (!app.signal.aborted) hardStop.abort();\n    await waitWhileRunning(",
    caughtBy: [
      "test/cli/recovery/reload.test.ts",
      "requests in flight end under the configuration they began with, and the next ones follow the new one",
    ],
  },
  {
    name: "a configuration that starts retires the series of another installation",
    file: "src/db/connection/handle.ts",
    replace: "return installation ?? DEFAULT_INSTALLATION;",
    by: "return DEFAULT_INSTALLATION ?? installation;",
    caughtBy: [
      "test/db/installations.test.ts",
      "registering the series of one installation retires none of the other's",
    ],
  },
  {
    name: "nothing says that a changed configuration is refused",
    file: "src/health/alerts.ts",
    replace: 'if (state !== "live" || !refusal) return [];',
    by: 'if (state === "live" || !refusal) return [];',
    caughtBy: [
      "test/cli/recovery/reload.test.ts",
      "a mistake in the changed configuration is shown everywhere until it is corrected",
    ],
  },
  {
    name: "two workers send the same notification",
    file: "src/db/notifications.ts",
    replace: "::uuid and (",
    by: "::uuid or n.claim is not null and (",
    caughtBy: [
      "test/db/notifications.test.ts",
      "a notification that another worker has sent meanwhile is not sent again",
    ],
  },
  {
    name: "a failed lookup is cached like an answer",
    file: "src/async.ts",
    replace: "if (known.get(key) === begun) known.delete(key);",
    by: "",
    caughtBy: [
      "test/jobs/filter-check.test.ts",
      "the next request of a run repeats a Get Fields call that failed, and not one that was answered",
    ],
  },
  {
    name: "a job is overdue since the newest of its missed scheduled times",
    file: "src/schedule/due.ts",
    replace: "if (scheduledThrough) return runAfter(job, scheduledThrough);",
    by: "if (scheduledThrough) return latestOccurrence(job, new Date());",
    caughtBy: ["test/cli/status/workers.test.ts", "a job that no live worker takes up is overdue since its first"],
  },
  {
    name: "there is no alert without a running worker",
    file: "src/health/alerts.ts",
    replace: "if (workers.some(({ recent }) => recent)) return undefined;",
    by: "if (workers.some(({ recent, pid }) => recent || pid > 0)) return undefined;",
    caughtBy: ["test/web/dashboard/verdict.test.ts", "makes one alert"],
  },
  {
    name: "there is no alert after a failed run whose days are complete",
    file: "src/health/alerts.ts",
    replace: "if (!failedRun?.overCompleteDays) return [];",
    by: 'if (!failedRun?.overCompleteDays || failedRun.trigger === "manual") return [];',
    caughtBy: [
      "test/cli/status/workers.test.ts",
      "a run that failed or was killed is an alert until the next run succeeds",
    ],
  },
  {
    name: "a snoozed alert is notified",
    file: "src/health/alerts.ts",
    replace: "return snoozeOf([subject, ...alsoNamed], state.snoozes) ? [] : [{ condition, phase }];",
    by: "return [{ condition, phase }];",
    caughtBy: ["test/health/snooze.test.ts", "while an alert is snoozed, neither its beginning nor its end is sent"],
  },
  {
    name: "a budget's period that is over is alarmed a second time after a backfill",
    file: "src/health/alerts.ts",
    replace: '!known.has(subject) && subject.startsWith("anomaly ")',
    by: "!known.has(subject)",
    caughtBy: [
      "test/health/budget-alerts.test.ts",
      "days that are caught up give one alert a budget, threshold and day",
    ],
  },
  {
    name: "a budget whose days were not read is shown as unused",
    file: "migrations/views/budget_period.sql",
    replace: "case when max(r.fetched_at) is not null then coalesce(sum(u.amount), 0) end as used",
    by: "coalesce(sum(u.amount), 0) as used",
    caughtBy: ["test/db/views/budgets.test.ts", "days that were not read are counted and not taken for zero"],
  },
  {
    name: "budgets are not read again after an answer was stored",
    file: "src/db/budgets.ts",
    replace: "const isKnown = known?.basis === basis &&",
    by: "const isKnown = known !== undefined &&",
    caughtBy: ["test/health/budget-alerts.test.ts", "each threshold is notified once by one worker"],
  },
];
