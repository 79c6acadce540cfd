// The schema of jobs.config.json, and the JSON Schema made from it for editors. What one part of the file says about another is
// checked in checks.ts.

import { z } from "zod";
import { AUTH_SCHEMES } from "../service/service.ts";
import {
  DIALECTS,
  DIMENSIONS,
  type Dimension,
  dimension,
  documentedValues,
  EACH_DIMENSIONS,
  SOURCES,
} from "../usage/dimensions.ts";
import { SENSITIVITIES } from "../usage/metrics.ts";
import { FEATURE_CHECKS } from "../usage/plan.ts";
import { GUARD_MODES, UNDATED } from "../usage/slice.ts";
import {
  BaseUrl,
  FeatureName,
  FeatureValue,
  GroupingSetting,
  MaxConcurrent,
  Name,
  object,
  PublicUrl,
  RequestsPerSecond,
  Schedule,
  secretReference,
  Timezone,
  text,
  wholeNumber,
} from "./fields.ts";
import { describeValue } from "./messages.ts";
import { BudgetList, PriceList } from "./money.ts";
import { ProjectEntry } from "./projects.ts";
import { Rotation } from "./rotations.ts";

const Service = object({
  baseUrl: BaseUrl.describe(
    "The address of the service, without /v1. It begins with https:, except for a service on this machine.",
  ),
  authScheme: z
    .enum(AUTH_SCHEMES)
    .default("Token")
    .describe('The word before the key in the Authorization header; "none" sends the bare key.'),
  dialect: z
    .enum(["auto", ...DIALECTS])
    .default("auto")
    .describe(
      'The parameter names to send: "2026" (grouping=models, tag=), "interface" (model, tags), or "auto", which finds out.',
    ),
  requestsPerSecond: RequestsPerSecond.default(5).describe(
    "The most calls a second, of all programs on one database together: workers, `export`, `backfill`, `rotate`, `check`.",
  ),
  maxConcurrent: MaxConcurrent.default(4).describe(
    "The most calls at the same time, shared in the same way: programs that call at once get even shares within seconds.",
  ),
  timeoutSeconds: wholeNumber(1, 600)
    .default(30)
    .describe("How long one attempt of a call may take, including its whole answer."),
});

const DimensionValues = object(
  Object.fromEntries(DIMENSIONS.map((name) => [name, dimensionValue(name)])) as Record<
    Dimension,
    z.ZodExactOptional<z.ZodString>
  >,
);

/** Any text: whether the interface lists the value is checked in checks.ts, since `checkFeatures` may allow others. */
function dimensionValue(name: Dimension): z.ZodExactOptional<z.ZodString> {
  const listed = documentedValues(name, "usage");
  const value = text(256);
  const { description } = dimension(name);
  return (listed === undefined ? value : value.meta({ examples: [...listed] })).exactOptional().describe(description);
}

const Filter = object({
  name: Name.describe("The filter's name in the views. The same name means the same conditions in every export."),
  features: z
    .record(FeatureName, FeatureValue)
    .prefault({})
    .describe("Names of features, each with true, false or a text. The service joins several true ones with OR."),
  dimensions: DimensionValues.prefault({}).describe(
    "Names of dimensions, each with a value. A model is given by name or id: today's service takes the id, which the program looks up.",
  ),
});

export const FilterOfEach = object({
  each: z
    .enum(EACH_DIMENSIONS)
    .describe(
      "A dimension. Each of its values that stored usage of the window has is a filter, named such as `accessor=VALUE`. Needs a window, and an export that groups by the dimension without conditions.",
    ),
  atMost: wholeNumber(1, 500)
    .default(50)
    .describe("Of each project, only so many values are read: those with the most requests. At most 500."),
});

export type FilterOfEach = z.output<typeof FilterOfEach>;

const Window = object({
  days: wholeNumber(1, 366).describe("How many complete days to read again at every run."),
  today: z.boolean().default(false).describe("Whether to add today, whose numbers still grow."),
});

const Export = object({
  name: Name.describe("The export's name, as in `export --job NAME`."),
  schedule: Schedule.describe(
    "A cron expression of five fields (minute hour day month weekday), or six with seconds first. If both day and weekday are restricted, both must match.",
  ),
  timezone: Timezone.default("UTC").describe(
    "The time zone of the schedule. A time that daylight saving skips runs right after the gap, one that comes twice runs once. Days of usage are always UTC days.",
  ),
  source: z
    .enum(SOURCES)
    .default("usage")
    .describe(
      'What to read: "usage", or "billing", which is the amounts in dollars. Billing needs a window and a key with the scope billing:read, and not every service offers it.',
    ),
  projects: z
    .array(Name)
    .min(1)
    .describe(
      "The names of the projects to read. A name with * is a pattern and stands for every project that it fits. Discovered projects are named by patterns alone, so that a typo is an error.",
    ),
  window: Window.exactOptional().describe(
    "The days to ask for. Left out, no date is sent, the answer is stored under its own days, and the days of a missed run can't be read later.",
  ),
  groupings: z
    .array(GroupingSetting)
    .min(1)
    .describe(
      'The breakdowns to read; "none" is the total. Each one is read under every filter. Billing is grouped by accessor, deployment, line_item or tags, or by several of them at once, as ["tags", "line_item"].',
    ),
  filters: z
    .array(
      z.union([Filter, FilterOfEach], {
        error: '{ "name": "NAME", "features": { … }, "dimensions": { … } } or { "each": "DIMENSION" }',
      }),
    )
    .min(1)
    .prefault([{ name: "all" }])
    .describe("What to narrow the usage to. A filter without conditions is all usage."),
  checkFeatures: z
    .enum(FEATURE_CHECKS)
    .default("error")
    .describe(
      'What happens to a filter with a name that neither the service\'s interface nor Get Fields knows, unless its numbers prove that it works: "error" stores nothing, "warn" stores the answer when a later run gets the same, "off" checks nothing.',
    ),
  emptyGuard: z
    .enum(GUARD_MODES)
    .default("confirm")
    .describe(
      "Whether a day that had usage keeps its numbers if an answer has none, until a run at least an hour later confirms that answer.",
    ),
  cliffGuard: z
    .enum(GUARD_MODES)
    .default("confirm")
    .describe(
      "The same if an answer has over 90 % less than is stored for the day, counted by requests or, without any, by hours, dollars or another metric. Days of less than 100 requests, 10 hours, 10 dollars or 10,000 tokens or characters are not guarded.",
    ),
  undated: z
    .enum(UNDATED)
    .default("snapshot")
    .describe(
      'Without a window: how an answer without any date is stored. "snapshot": as a snapshot of unknown span (bi.usage_snapshot). "day" and "day-before": as the usage of the day on which it is read, by the service\'s clock, or of the day before it; use these only if the vendor says so.',
    ),
});

const Access = z
  .union(
    [
      z.literal("none").describe("Everybody who reaches the address sees usage, names and metrics."),
      object({
        bearer: secretReference("token").describe(
          "The token that a visitor must send, as `Authorization: Bearer …`. Never the token itself.",
        ),
      }),
      object({
        basic: object({
          username: z
            .string()
            .regex(/^[A-Za-z0-9._@+-]{1,100}$/, 'a name of 1 to 100 letters, digits, ".", "_", "@", "+" and "-"')
            .describe("The user name that a visitor must send."),
          password: secretReference("password").describe(
            "The password that a visitor must send. Never the password itself.",
          ),
        }).describe("A user name and password, which a browser asks for."),
      }),
    ],
    {
      error:
        '{ "bearer": { "env": "NAME" } } or { "basic": { "username": "…", "password": { "env": "NAME" } } }, or "none"',
    },
  )
  .transform((access) =>
    access === "none"
      ? { kind: "none" as const }
      : "bearer" in access
        ? { kind: "bearer" as const, token: access.bearer }
        : { kind: "basic" as const, ...access.basic },
  );

const Monitor = object({
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address such as "127.0.0.1", without a port')
    .default("127.0.0.1")
    .describe("Where `start` serves the dashboard, the metrics and the health checks."),
  port: wholeNumber(0, 65_535).default(9464).describe("Its port; 0 takes a free one."),
  publicUrl: PublicUrl.exactOptional(),
  access: Access.exactOptional().describe(
    'What a visitor must send for everything but `/livez` and `/readyz`: { "bearer": { "env": "NAME" } } or { "basic": { "username": "…", "password": { "env": "NAME" } } }, each secret of at least 16 characters. Required if `host` is not an address of this machine alone; "none" lets everybody in, for example behind a proxy that asks.',
  ),
}).superRefine(({ host, access }, context) => {
  if (access !== undefined || /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)) return;
  const message = `other machines reach ${describeValue(host)}: set "access" beside it to a token or password that visitors must send, or to "none" if everybody who reaches it may see usage and names; or take "127.0.0.1"`;
  context.addIssue({ code: "custom", path: ["host"], message, input: host });
});

/** The addresses are secrets: whoever knows one can write to the channel behind it. */
const Notify = object({
  webhook: secretReference("address")
    .exactOptional()
    .describe(
      '{ "env": "NAME" } or { "file": "PATH" } with the address, a secret, to which { "text": … } is posted when something goes wrong and when it is well again. For Slack, Mattermost, Google Chat and Discord (`…/slack`); not for Teams.',
    ),
  deadMan: secretReference("address")
    .exactOptional()
    .describe(
      "The same, for an address that each worker calls (GET) every minute while `status` would exit with 0. Its receiver raises the alarm when the calls stop: give it a grace time longer than the longest run.",
    ),
  report: Schedule.exactOptional().describe(
    'A cron expression in UTC, such as "0 8 * * 1": then the usage and cost of the last 7 days are posted to `webhook`, in the words of `report --weekly`.',
  ),
});

const Worker = object({
  drainSeconds: wholeNumber(1, 600)
    .default(20)
    .describe("How long a worker that is asked to stop may take to finish the work it has claimed."),
});

const Anomalies = object({
  sensitivity: z
    .enum(["off", ...SENSITIVITIES])
    .default("normal")
    .describe(
      'How far a final day must differ from what is usual to be an alert: 8 ("low"), 6 ("normal") or 5 ("high") times the usual spread. "off" judges no day.',
    ),
});

const Runs = object({
  keepDays: wholeNumber(1, 36_500)
    .default(400)
    .describe(
      "How many days runs and the events of retired keys are kept; the newest runs of each job always stay. Numbers, coverage and the key ledger are kept for ever.",
    ),
});

export const ConfigFile = object({
  $schema: z.string().exactOptional().describe("The JSON Schema of this file, for editors."),
  service: Service.describe("The service whose usage is exported."),
  projects: z
    .array(ProjectEntry)
    .min(1)
    .describe("The projects, each with the key that reads it, and entries that discover the projects of a key."),
  exports: z.array(Export).prefault([]).describe("The jobs that export usage."),
  rotations: z.array(Rotation).prefault([]).describe("The jobs that replace API keys."),
  prices: PriceList.prefault([]).describe(
    "What usage costs, each price from its own day on. A changed price holds for past days, too: add one with a later day instead.",
  ),
  budgets: BudgetList.prefault([]).describe(
    "How much may be used or cost in a month or a day, and at which part of it there is an alert.",
  ),
  anomalies: Anomalies.prefault({}).describe("Alerts about final days whose usage is unusual."),
  runs: Runs.prefault({}).describe("How long past runs are kept."),
  worker: Worker.prefault({}).describe("How `start` works."),
  monitor: Monitor.prefault({}).describe("Where `start` answers health checks, metrics and the dashboard."),
  notify: Notify.prefault({}).describe("Whom `start` notifies when something goes wrong."),
});

export type ConfigFile = z.output<typeof ConfigFile>;

/** VS Code and other editors take `allowComments` and `allowTrailingCommas` from the schema. */
export function configJsonSchema(): object {
  return z.toJSONSchema(
    ConfigFile.meta({ title: "usage-export: jobs.config.json", allowComments: true, allowTrailingCommas: true }),
    {
      target: "draft-2020-12",
      io: "input",
    },
  );
}
