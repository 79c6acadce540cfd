// The shape of jobs.config.json: fields, kinds and ranges. What refers to something elsewhere in the file is checked in
// references.ts.

import { z } from "zod";
import { baseUrlFault } from "./base-url.ts";
import { Export } from "./export-shape.ts";
import { Name, object, wholeNumber } from "./fields.ts";
import { Key } from "./key-shape.ts";
import { Monitor } from "./monitor-shape.ts";
import { Notify } from "./notify-shape.ts";
import { PLACEHOLDER_ID } from "./references.ts";
import { Rotation } from "./rotation-shape.ts";

const BaseUrl = z.string().superRefine((text, context) => {
  const message = baseUrlFault(text);
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
  key: Key,
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

export const Shape = object({
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

export type Shape = z.output<typeof Shape>;
