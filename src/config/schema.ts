// The schema of jobs.config.json (exports and rotations: job-schema.ts), and the JSON Schema made from it for editors.

import { z } from "zod";
import { PLACEHOLDER_ID } from "./checks.ts";
import { KeySource, Name, object, secretReference, wholeNumber } from "./fields.ts";
import { baseUrlProblem } from "./formats.ts";
import { Export, Rotation } from "./job-schema.ts";
import { describeValue } from "./messages.ts";

const Token = secretReference("token").describe(
  "The token that is asked for, as `Authorization: Bearer …`. Never the token itself.",
);
const Password = secretReference("password").describe("The password that is asked for. Never the password itself.");

const Access = z.union(
  [
    object({ bearer: Token }),
    object({
      basic: object({
        username: z
          .string()
          .regex(/^[A-Za-z0-9._@+-]{1,100}$/, 'a name of 1 to 100 letters, digits, ".", "_", "@", "+" and "-"')
          .describe("The user name that is asked for."),
        password: Password,
      }).describe("A user name and password, which a browser asks for."),
    }),
  ],
  {
    error: '{ "bearer": { "env": "NAME" } } or { "basic": { "username": "…", "password": { "env": "NAME" } } }',
  },
);

const PublicUrl = z
  .string()
  .superRefine((text, context) => {
    if (/^https?:\/\/[^\s\\@?#<>"]+$/i.test(text) && URL.canParse(text)) return;
    const got = text.includes("@") ? "" : `; got ${describeValue(text)}`;
    const message = `expected an address such as "https://usage.example.com", without a name, password, "?" and "#"${got}`;
    context.addIssue({ code: "custom", message });
  })
  .describe(
    "The address at which people reach the dashboard, through any reverse proxy. Notices name it and link to it.",
  );

const Monitor = object({
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address such as "127.0.0.1", without a port')
    .default("127.0.0.1")
    .describe("The address the dashboard, the metrics and the health checks listen on."),
  port: wholeNumber(0, 65_535).default(9464).describe("Its port; 0 takes a free one."),
  publicUrl: PublicUrl.exactOptional(),
  access: Access.exactOptional().describe(
    "What is asked for before anything but a health check is answered. Without it the dashboard is open on this machine's own address (127.0.0.1), and shut on any other.",
  ),
});

// Where notices go. The addresses are secrets: whoever knows one can write to the channel behind it.

const Address = secretReference("address");

const Notify = object({
  webhook: Address.exactOptional().describe(
    'Where { "text": … } is posted when something goes wrong and when it is well again. Never the address itself.',
  ),
  deadMan: Address.exactOptional().describe(
    "What is called every minute while all is well, so that whoever listens there tells when it stays silent. Never the address itself.",
  ),
});

// The shape of jobs.config.json: fields, kinds and ranges. What refers to something elsewhere in the file is checked in
// references.ts.

const BaseUrl = z.string().superRefine((text, context) => {
  const message = baseUrlProblem(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

const REQUESTS_PER_SECOND = "a number greater than 0 and at most 10000";

const Service = object({
  baseUrl: BaseUrl.describe("The address of the service, without /v1. https, except for this machine."),
  authScheme: z
    .enum(["Token", "Bearer", "none"])
    .default("Token")
    .describe('The word before the key in the Authorization header; "none" sends the bare key.'),
  dialect: z
    .enum(["auto", "interface", "2026"])
    .default("auto")
    .describe(
      'The parameter names that the service uses: "auto" probes for them. "2026" sends grouping=models and tag= instead of model and tags=.',
    ),
  requestsPerSecond: z
    .number(REQUESTS_PER_SECOND)
    .gt(0, REQUESTS_PER_SECOND)
    .max(10_000, REQUESTS_PER_SECOND)
    .default(5)
    .describe("The most calls a second, over all replicas."),
  maxConcurrent: wholeNumber(1, 64).default(4).describe("The most calls at the same time."),
  timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long one attempt of a call may take."),
});

const Project = object({
  // A dot or a slash would leave the project's path, however it is escaped.
  id: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/, 'a project id: 1 to 128 letters, digits, "-" and "_"')
    // For editors only: the demo accepts the placeholder, and every other command reports it with its own message.
    .meta({ pattern: `^(?!${PLACEHOLDER_ID}$)[A-Za-z0-9_-]{1,128}$` })
    .describe("The project's id at the service."),
  name: Name.describe("The project's name here, in exports, rotations and views."),
  key: KeySource,
});

const Worker = object({
  drainSeconds: wholeNumber(1, 600)
    .default(20)
    .describe("How long a worker that is told to stop may take to finish what it has in hand."),
});

const Runs = object({
  keepDays: wholeNumber(1, 36_500)
    .default(400)
    .describe("How many days runs and the events of retired keys are kept. Numbers and coverage are kept for ever."),
});

export const ConfigFile = object({
  $schema: z.string().exactOptional().describe("The JSON Schema of this file, for editors."),
  service: Service.describe("The service whose usage is exported."),
  projects: z.array(Project).min(1).describe("The projects, each with the key that reads it."),
  exports: z.array(Export).default([]).describe("The jobs that export usage."),
  rotations: z.array(Rotation).default([]).describe("The jobs that replace API keys."),
  runs: Runs.prefault({}).describe("How long past runs are kept."),
  worker: Worker.prefault({}).describe("How `start` works."),
  monitor: Monitor.prefault({}).describe("Where `start` answers health checks, metrics and the dashboard."),
  notify: Notify.prefault({}).describe("Whom `start` tells when something goes wrong."),
});

export type ConfigFile = z.output<typeof ConfigFile>;

// The JSON Schema of jobs.config.json, made from the shape that checks it.

/** For editors: it describes what may be written. References between parts of the file are checked by `check` alone. */
export function configJsonSchema(): object {
  return z.toJSONSchema(ConfigFile.meta({ title: "usage-export: jobs.config.json" }), {
    target: "draft-2020-12",
    io: "input",
  });
}
