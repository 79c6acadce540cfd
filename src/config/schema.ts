// The schema of jobs.config.json, and the JSON Schema made from it for editors. cross-field-rules.ts has the rules between fields.

import { z } from "zod";
import { AUTH_SCHEMES } from "../service/client-types.ts";
import { DIALECTS, DIMENSIONS, type Dimension, dimension, EACH_DIMENSIONS, SOURCES } from "../usage/dimensions.ts";
import { FEATURE_CHECKS } from "../usage/export-plan.ts";
import { SENSITIVITIES } from "../usage/metrics.ts";
import { GUARD_MODES, UNDATED } from "../usage/slice-decision.ts";
import {
  BaseUrl,
  checked,
  FeatureName,
  FeatureValue,
  GroupingSetting,
  isLoopback,
  Name,
  object,
  PublicUrl,
  Schedule,
  secretReference,
  Timezone,
  text,
  wholeNumber,
} from "./fields.ts";
import { describeValue } from "./messages.ts";
import { BudgetInFile, PriceInFile } from "./money.ts";
import { ProjectEntry } from "./projects.ts";
import { RotationInFile } from "./rotations.ts";

const EXPECTED_RATE = "a number greater than 0 and at most 10000";

const Service = object({
  baseUrl: BaseUrl.describe("The address of the service, without /v1; https, unless it is on this machine."),
  authScheme: z.enum(AUTH_SCHEMES).default("Token").describe('The word before the key; "none" sends the bare key.'),
  dialect: z
    .enum(["auto", ...DIALECTS])
    .default("auto")
    .describe('The parameter names to send: "2026", "interface", or "auto", which finds out.'),
  requestsPerSecond: z
    .number(EXPECTED_RATE)
    .gt(0, EXPECTED_RATE)
    .max(10_000, EXPECTED_RATE)
    .default(5)
    .describe("The most calls a second, of all programs on one database."),
  maxConcurrent: wholeNumber(1, 64).default(4).describe("The most calls at once, of all programs on one database."),
  timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long one attempt of a call may take."),
});

/** Takes any text. cross-field-rules.ts compares it with the values that the service's interface lists, unless `checkFeatures` allows others. */
function dimensionSchema(name: Dimension) {
  const { values, description } = dimension(name);
  const value = values?.usage ? text(256).meta({ examples: [...values.usage] }) : text(256);
  return value.exactOptional().describe(description);
}

type DimensionValue = ReturnType<typeof dimensionSchema>;

const DimensionValues = object(
  Object.fromEntries(DIMENSIONS.map((name) => [name, dimensionSchema(name)])) as Record<Dimension, DimensionValue>,
);

const Filter = object({
  name: Name.describe("The filter's name. In every export it stands for the same conditions."),
  features: z
    .record(FeatureName, FeatureValue)
    .prefault({})
    .describe("Features, each with true, false or a text. The service joins several true ones with OR."),
  dimensions: DimensionValues.prefault({}).describe("Dimensions, each with a value; a model by its name or id."),
});

const FanOut = object({
  each: z.enum(EACH_DIMENSIONS).describe("A dimension; each of its values in stored usage becomes a filter."),
  atMost: wholeNumber(1, 500).default(50).describe("How many values to read of each project: those requested most."),
});

const Window = object({
  days: wholeNumber(1, 366).describe("How many complete days to read again at every run."),
  today: z.boolean().default(false).describe("Whether to add today, whose numbers still grow."),
});

const FILTER_FORMS = '{ "name": "NAME", "features": { … }, "dimensions": { … } } or { "each": "DIMENSION" }';

const Export = object({
  name: Name.describe("The export's name, as in `export --job NAME`."),
  schedule: Schedule.describe("A cron expression: minute hour day month weekday, or six fields with seconds first."),
  timezone: Timezone.default("UTC").describe("The schedule's time zone; days of usage are always UTC."),
  source: z.enum(SOURCES).default("usage").describe('What to read: "usage", or "billing", the amounts in dollars.'),
  projects: z.array(Name).min(1).describe("Names of projects, or patterns; * stands for any text."),
  window: Window.exactOptional().describe("The days to ask for. Left out, no date is sent."),
  groupings: z.array(GroupingSetting).min(1).describe('The breakdowns to read; "none" is the total.'),
  filters: z
    .array(z.union([Filter, FanOut], { error: FILTER_FORMS }))
    .min(1)
    .prefault([{ name: "all" }])
    .describe("Each grouping is read under each filter."),
  checkFeatures: z
    .enum(FEATURE_CHECKS)
    .default("error")
    .describe(
      'Filters with unknown names: "error" stores nothing, "warn" stores numbers that a later run confirms, "off" does not check.',
    ),
  emptyGuard: z
    .enum(GUARD_MODES)
    .default("confirm")
    .describe('An answer without usage: "confirm" keeps the numbers until a later run gets the same; "off" does not.'),
  cliffGuard: z
    .enum(GUARD_MODES)
    .default("confirm")
    .describe("Like emptyGuard, for an answer with over 90 % less usage."),
  undated: z
    .enum(UNDATED)
    .default("snapshot")
    .describe('An answer without dates is a "snapshot", or usage of the "day" of the call or the "day-before".'),
});

const ACCESS_FORMS =
  '{ "bearer": { "env": "NAME" } } or { "basic": { "username": "…", "password": { "env": "NAME" } } }, or "none"';

const Basic = object({
  username: z
    .string()
    .regex(/^[A-Za-z0-9._@+-]{1,100}$/, 'a name of 1 to 100 letters, digits, ".", "_", "@", "+" and "-"')
    .describe("The user name that a visitor must send."),
  password: secretReference("password").describe("The password that a visitor must send."),
});

const Access = z.union(
  [
    z.literal("none").describe("Everybody who reaches the address sees usage, names and metrics."),
    object({ bearer: secretReference("token").describe("The token in `Authorization: Bearer …`.") }),
    object({ basic: Basic.describe("A user name and password, which a browser asks for.") }),
  ],
  { error: ACCESS_FORMS },
);

const Monitor = checked(
  object({
    host: z
      .string()
      .regex(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address such as "127.0.0.1", without a port')
      .default("127.0.0.1")
      .describe("Where `start` serves the dashboard, the metrics and the health checks."),
    port: wholeNumber(0, 65_535).default(9464).describe("The port of `host`; 0 takes a free one."),
    publicUrl: PublicUrl.exactOptional().describe("The dashboard's address for people, to which notifications link."),
    access: Access.exactOptional().describe("What a visitor must send; required if other machines reach `host`."),
  }),
  ({ host, access }) =>
    access !== undefined || isLoopback(host)
      ? undefined
      : `other machines reach ${describeValue(host)}: set "access" beside it to a token or password that visitors must send, or to "none" if everybody who reaches it may see usage and names; or take "127.0.0.1"`,
  ["host"],
);

/** Whoever knows one of the addresses can post alerts or signs of life there, so both are secrets. */
const Notify = checked(
  object({
    webhook: secretReference("address")
      .exactOptional()
      .describe("The address to which alerts are posted, in Slack's format; not for Teams."),
    deadMan: secretReference("address")
      .exactOptional()
      .describe("The address that each worker calls every minute while `status` would exit with 0."),
    report: Schedule.exactOptional().describe(
      "When the last 7 days are posted to `webhook`: a cron expression in UTC.",
    ),
  }),
  ({ webhook, report }) =>
    report !== undefined && webhook === undefined
      ? 'expected "webhook" beside it, the address to which the report is posted'
      : undefined,
  ["report"],
);

const Worker = object({
  drainSeconds: wholeNumber(1, 600).default(20).describe("How long a stopping worker may take to finish its work."),
});

const Anomalies = object({
  sensitivity: z
    .enum(["off", ...SENSITIVITIES])
    .default("normal")
    .describe('A final day is unusual at 8 ("low"), 6 ("normal") or 5 ("high") times the usual spread; or "off".'),
});

const Runs = object({
  keepDays: wholeNumber(1, 36_500).default(400).describe("How many days runs and events of retired keys are kept."),
});

export const ConfigFile = object({
  $schema: z.string().exactOptional().describe("The JSON Schema of this file, for editors."),
  service: Service.describe("The service whose usage is exported."),
  projects: z.array(ProjectEntry).min(1).describe("The projects, and entries that discover the projects of a key."),
  exports: z.array(Export).prefault([]).describe("The jobs that export usage."),
  rotations: z.array(RotationInFile).prefault([]).describe("The jobs that replace API keys."),
  prices: z.array(PriceInFile).prefault([]).describe("What usage costs, each price from its own day on."),
  budgets: z.array(BudgetInFile).prefault([]).describe("How much may be used or spent in a month or a day."),
  anomalies: Anomalies.prefault({}).describe("Alerts about days whose usage is unusual."),
  runs: Runs.prefault({}).describe("How long past runs are kept."),
  worker: Worker.prefault({}).describe("The worker, which `start` runs."),
  monitor: Monitor.prefault({}).describe("Where `start` answers health checks, metrics and the dashboard."),
  notify: Notify.prefault({}).describe("Whom `start` notifies when something goes wrong."),
});

export type ConfigFile = z.output<typeof ConfigFile>;

/** VS Code and other editors take `allowComments` and `allowTrailingCommas` from the schema. */
export function configJsonSchema(): object {
  const meta = { title: "usage-export: jobs.config.json", allowComments: true, allowTrailingCommas: true };
  return z.toJSONSchema(ConfigFile.meta(meta), { target: "draft-2020-12", io: "input" });
}
