// When a job's alarm rings next.

import { createTask } from "node-cron";

/** The next moment after now that the expression names; undefined where there is none in sight. */
export function nextAlarm(schedule: string, timezone: string): Date | undefined {
  const task = createTask(schedule, () => {}, { timezone });
  try {
    return task.getNextRuns(1)[0];
  } finally {
    void task.destroy();
  }
}
