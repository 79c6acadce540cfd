// The command `init`: asks a few questions, tries the answers with the service, and writes the configuration.

import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import type { App } from "../app.ts";
import { parseConfig } from "../config/config.ts";
import { isKeyLike } from "../config/messages.ts";
import { AppError, errorText, systemCode } from "../errors.ts";
import { openServiceContext } from "../jobs/context.ts";
import { checkProject } from "../jobs/project-check.ts";
import { databaseUrlOf } from "../open-database.ts";
import { openServiceFor } from "../open-service.ts";
import { COMMAND, CONFIG_FILE, PACKAGE_FOLDER } from "../package-files.ts";
import { Secret } from "../secret.ts";
import type { Service } from "../service/client-types.ts";
import { fetchKeyInfo } from "../service/keys.ts";
import { fetchProjects } from "../service/projects.ts";
import { firstNames } from "../text.ts";
import { GROUPINGS, type Project } from "../usage/series.ts";
import { renderFindings } from "./check.ts";

type InitOptions = {
  readonly baseUrl: string;
  readonly keyVariable: string;
  readonly project?: string;
  readonly grouping: readonly string[];
  readonly days: number;
  readonly yes?: boolean;
};

/** The answers so far. What was not asked yet has the value of its option, or a placeholder. */
type Draft = Omit<InitOptions, "project" | "yes"> & { project: Project };

/** Throws if the file exists or nobody can be asked, and with --yes if a check fails. Without --yes the file is written even if a check fails. */
export async function runInit(app: App, options: InitOptions): Promise<number> {
  if (existsSync(app.configPath)) throw configExists(app);
  const isEmbedded = databaseUrlOf(app.env) === undefined;
  const { baseUrl, grouping, days } = options;
  const draft: Draft = { baseUrl, grouping, days, keyVariable: "UNKNOWN", project: { id: "unknown", name: "unknown" } };
  using prompt = openPrompt(app, draft, options.yes === true);
  await askForService(app, options, prompt, draft);
  await askForProject(app, options, prompt, draft);
  const toGroupings = (answer: string) => ({ grouping: answer.split(/[\s,]+/) });
  await prompt.ask(`Groupings (${GROUPINGS.join(", ")})`, grouping.join(","), toGroupings);
  await prompt.ask("How many days to read again each night", String(days), (answer) => ({ days: Number(answer) }));
  const isGood = await checkDraft(app, draft);
  if (!isGood && options.yes) throw new AppError("rejected", "nothing was written, because a check failed; see above");
  const text = configText(draft, schemaPathFor(app.configPath));
  // `wx`: a file that appeared during the questions is not replaced.
  await writeFile(app.configPath, text, { flag: "wx" }).catch((error: unknown) => {
    throw systemCode(error) === "EEXIST" ? configExists(app) : error;
  });
  const config = app.configPath === CONFIG_FILE ? "" : ` --config ${app.configPath}`;
  const commands = ["migrate", "export", isEmbedded ? "start --embedded" : "start"];
  const embedded = "the embedded database in ./data; set DATABASE_URL for a Postgres server";
  const where = isEmbedded ? embedded : "the database at DATABASE_URL";
  const next = commands.map((command) => `  ${COMMAND} ${command}${config}\n`).join("");
  app.write(`\nwrote ${app.configPath}. Numbers go to ${where}.\nNext:\n${next}`);
  return 0;
}

function configExists({ configPath }: App): AppError {
  return new AppError("config", `${configPath} exists: edit it, or write a new one with --config FILE`);
}

type Prompt = ReturnType<typeof openPrompt>;

function openPrompt(app: App, draft: Draft, takesDefaults: boolean) {
  if (!takesDefaults && process.stdin.isTTY !== true) {
    const message = "init asks at a terminal, but there is none: give --yes, and the answers as options (init --help)";
    throw new AppError("config", message);
  }
  const lines = takesDefaults ? undefined : createInterface({ input: process.stdin, output: process.stderr });
  // Without this, Ctrl-C would only close the interface, and on Node 22 the question would wait for ever.
  lines?.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  const ended = new AbortController();
  lines?.once("close", () => ended.abort(new AppError("stopped", "the input ended before the last answer")));
  const signal = AbortSignal.any([app.signal, ended.signal]);
  return {
    /** Asks, lets `read` turn the answer into a part of the draft, and adds it. If that is invalid, asks again or, with --yes, throws. */
    async ask(text: string, defaultAnswer: string, read: (answer: string) => Partial<Draft> | Promise<Partial<Draft>>) {
      for (;;) {
        try {
          const answer = await lines?.question(`${text} [${defaultAnswer}]: `, { signal });
          const part = await read(answer?.trim() || defaultAnswer);
          parseConfig(configText({ ...draft, ...part }), app.configPath);
          Object.assign(draft, part);
          return;
        } catch (error) {
          signal.throwIfAborted();
          if (takesDefaults || !(error instanceof AppError)) throw error;
          process.stderr.write(app.scrubber.scrub(`  ${errorText(error)}\n`));
        }
      }
    },
    [Symbol.dispose]: () => lines?.close(),
  };
}

/** The address is tried together with the key, after the second question: neither can be checked alone. */
async function askForService(app: App, options: InitOptions, prompt: Prompt, draft: Draft): Promise<void> {
  await prompt.ask("The service's address", draft.baseUrl, (baseUrl) => ({ baseUrl }));
  await prompt.ask("The environment variable that holds the API key", options.keyVariable, async (keyVariable) => {
    const key = app.env[keyVariable];
    if (!key) {
      // The answer may be the key itself, by mistake.
      const isName = /^[A-Z][A-Z0-9_]*$/.test(keyVariable) && !isKeyLike(keyVariable);
      const message = isName
        ? `${keyVariable} is not set: set it to the API key, and run init again`
        : "expected the name of an environment variable, such as USAGE_EXPORT_KEY, that holds the API key; what was given is not shown, as it may be a key";
      throw new AppError("config", message);
    }
    app.scrubber.add(new Secret(key));
    await withService(app, { ...draft, keyVariable }, (service, secret) => fetchKeyInfo(service, secret, app.signal));
    return { keyVariable };
  });
}

/** A key may see thousands of projects. */
const PROJECTS_SHOWN_MAX = 20;

async function askForProject(app: App, options: InitOptions, prompt: Prompt, draft: Draft): Promise<void> {
  const list = (service: Service, key: Secret) => fetchProjects(service, key, app.signal);
  const { listed } = await withService(app, draft, list).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code === "stopped") throw error;
    // The user can still give the id if the list can't be read.
    return { listed: [] };
  });
  const ids = listed.map(({ id }) => id);
  const names = listed.map(({ id, name }) => `${name} (${id})`);
  if (!options.yes) process.stderr.write(`  ${firstNames(names, PROJECTS_SHOWN_MAX) || "no project is listed"}\n`);
  const onlyId = ids.length === 1 ? ids[0] : undefined;
  await prompt.ask("The id of the project", options.project ?? onlyId ?? "", (answer) => {
    const project = listed.find(({ id, name }) => id === answer || name === answer);
    if (project) return { project };
    if (ids.length === 0 && answer !== "") return { project: { id: answer, name: answer } };
    if (ids.length === 0) throw new AppError("config", "the key lists no project: give the id with --project");
    const ending = answer === "" ? "; choose one with --project" : `, got ${JSON.stringify(answer)}`;
    const known = firstNames(ids, PROJECTS_SHOWN_MAX);
    throw new AppError("config", `expected a project that the key can read (${known})${ending}`);
  });
}

/** Prints the checks of the project, made without a database, and returns whether none failed. */
async function checkDraft(app: App, draft: Draft): Promise<boolean> {
  const config = parseConfig(configText(draft), app.configPath);
  await using context = await openServiceContext(app, config, undefined);
  const findings = await checkProject(context, draft.project);
  app.write(renderFindings({ subject: `project ${draft.project.name}`, findings }));
  return findings.every(({ state }) => state !== "fail");
}

async function withService<T>(app: App, draft: Draft, work: (service: Service, key: Secret) => Promise<T>): Promise<T> {
  await using service = await openServiceFor(app, parseConfig(configText(draft), app.configPath), undefined);
  return await work(service, new Secret(app.env[draft.keyVariable] ?? ""));
}

/** The JSON Schema's path, relative to the configuration's folder; undefined if the package is not installed below that folder. */
function schemaPathFor(configPath: string): string | undefined {
  const folder = path.dirname(path.resolve(configPath));
  const relative = path.relative(folder, path.join(PACKAGE_FOLDER, "jobs.config.schema.json"));
  const isInside = !relative.startsWith("..") && !path.isAbsolute(relative);
  return isInside ? `./${relative.replaceAll(path.sep, "/")}` : undefined;
}

function configText({ baseUrl, keyVariable, project, grouping: groupings, days }: Draft, schema?: string): string {
  const config = {
    $schema: schema,
    service: { baseUrl },
    projects: [{ id: project.id, name: project.name, key: { env: keyVariable } }],
    exports: [{ name: "nightly", schedule: "15 2 * * *", projects: [project.name], window: { days }, groupings }],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}
