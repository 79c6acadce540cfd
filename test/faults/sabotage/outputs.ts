// Sabotages of the configuration, of outputs, and of the access to the monitor.

import type { Sabotage } from "./sabotage.ts";

export const OUTPUTS: readonly Sabotage[] = [
  {
    name: "an export with failures ends with the status 0",
    file: "src/cli/export.ts",
    replace: "result.failed + result.suspect === 0",
    by: "result.requests > 0",
    caughtBy: [
      "test/cli/export/export.test.ts",
      "the answer in JSON has the counts of each job, and each failure with its request",
    ],
  },
  {
    name: "a wrong configuration ends with the status 1 instead of 2",
    file: "src/cli/command-line.ts",
    replace: `error.code === "config" ? 2 : 1`,
    by: `error.code === "stopped" ? 2 : 1`,
    caughtBy: ["test/cli/config-mistakes.test.ts", "a key in the configuration is refused, and not shown"],
  },
  {
    name: "a text becomes a formula in a spreadsheet",
    file: "src/dump/csv.ts",
    replace: "BEGINS_FORMULA.test(text) ?",
    by: "text.length < 0 ?",
    caughtBy: ["test/dump/csv.test.ts", "a text that a spreadsheet could take for a formula"],
  },
  {
    name: "a text becomes markup in a page",
    file: "src/text.ts",
    replace: `.replaceAll(/[&<>"']/g,`,
    by: `.replaceAll(/[&"']/g,`,
    caughtBy: ["test/report/html.test.ts", "inserts markup, escaped"],
  },
  {
    name: "an unknown field of the configuration is ignored",
    file: "src/config/fields.ts",
    replace: "return z.strictObject(shape, {",
    by: "return z.object(shape, {",
    caughtBy: ["test/config/typos.test.ts", "is refused, and"],
  },
  {
    name: "a key is sent to another machine without encryption",
    file: "src/config/fields.ts",
    replace: `url.protocol === "http:" && !isLoopback(url.hostname)`,
    by: `url.protocol === "http:" && url.hostname === ""`,
    caughtBy: ["test/config/messages.test.ts", "service.baseUrl"],
  },
  {
    name: "known secrets are not hidden in the log",
    file: "src/log.ts",
    replace: "process.stderr.write(scrubber.scrub(line))",
    by: "process.stderr.write(line)",
    caughtBy: ["test/log.test.ts", "a secret in a log line is hidden"],
  },
  {
    name: "JSON.stringify reveals a secret",
    file: "src/secret.ts",
    replace: "toJSON(): string {\n    return REDACTED;",
    by: "toJSON(): string {\n    return this.#value;",
    caughtBy: ["test/secret.test.ts", "printing a secret does not show it"],
  },
  {
    name: "the reason of a failure is stored with the secrets in it",
    file: "src/jobs/request-deps.ts",
    replace: "{ reason: app.scrubber.scrub(unscrubbed), code }",
    by: "{ reason: unscrubbed, code }",
    caughtBy: ["test/jobs/request-deps.test.ts", "the reason of a failure is stored without the secrets"],
  },
  {
    name: "the monitor accepts the beginning of its credentials",
    file: "src/web/access.ts",
    replace: "timingSafeEqual(hash(sent), expected)",
    by: "credentials.reveal().startsWith(sent.toString())",
    caughtBy: ["test/web/access.test.ts", "is accepted: false"],
  },
  {
    name: "a day is judged before it is final",
    file: "src/db/anomalies.ts",
    replace: "closed_at, now()) = 'final'",
    by: "closed_at, now()) <> 'open'",
    caughtBy: ["test/db/anomalies.test.ts", "a day is judged only when it is final"],
  },
  {
    name: "the first run after an upgrade judges old days",
    file: "src/db/anomalies.ts",
    replace: "coalesce(judged.first, final.newest)",
    by: "coalesce(judged.first, final.usage_date)",
    caughtBy: ["test/db/anomalies.test.ts", "at first only the newest final day is judged"],
  },
  {
    name: "an unusual day is over before anybody could be notified",
    file: "migrations/views/usage_anomalies.sql",
    replace: "interval '12 hours'",
    by: "interval '0 hours'",
    caughtBy: ["test/db/anomalies.test.ts", "an unusual day is over with a later usual day"],
  },
  {
    name: "a forecast takes days that are not final as they are",
    file: "migrations/views/month_forecast.sql",
    replace: "amount / known_share as amount",
    by: "amount as amount",
    caughtBy: ["test/db/views/forecast-view.test.ts", "a day that is not final is scaled up"],
  },
];
