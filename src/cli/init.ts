// The command `init`: asks for a configuration, checks each answer with the service, and writes the file.

import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import type { App } from "../app.ts";
import { type Config, parseConfig } from "../config/config.ts";
import { isKeyLike } from "../config/messages.ts";
import { databaseUrlOf } from "../database.ts";
import { AppError, errorText, systemCode } from "../errors.ts";
import { checkProject } from "../jobs/check.ts";
import { openServiceContext } from "../jobs/context.ts";
import { openServiceFor } from "../open-service.ts";
import { COMMAND, PACKAGE_FOLDER } from "../package-files.ts";
import { Secret } from "../secret.ts";
import { isKeyRejected } from "../service/errors.ts";
import { fetchToken } from "../service/keys.ts";
import { fetchProjects } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
import { AUTH_SCHEMES, type AuthScheme } from "../service/service.ts";
import { firstNames, toPrintableLine } from "../text.ts";
import { GROUPINGS, type Project } from "../usage/series.ts";
import { renderFindings } from "./check.ts";

export type InitOptions = {
  readonly baseUrl?: string;
  readonly keyVariable?: string;
  readonly project?: string;
  readonly grouping?: readonly string[];
  readonly days?: number;
  /** Takes the options and the defaults, and asks nothing. */
  readonly yes?: boolean;
};

const DEFAULTS = {
  baseUrl: "https://api.deepgram.com",
  keyVariable: "USAGE_EXPORT_KEY",
  groupings: ["none", "accessor", "model", "tags"],
  days: 7,
};

/** What has been answered so far. */
type Draft = {
  baseUrl: string;
  authScheme: AuthScheme;
  keyVariable: string;
  project: Project;
  groupings: readonly string[];
  days: number;
};

/** Throws an AppError, and writes nothing, if the file exists, if there is no terminal, or with --yes if an answer does not work. */
export async function runInit(app: App, options: InitOptions): Promise<number> {
  if (existsSync(app.configPath)) throw configExists(app);
  const url = databaseUrlOf(app.env);
  using prompt = openPrompt(app, options.yes === true);
  const draft = await askForService(app, options, prompt);
  draft.project = await askForProject(app, options, prompt, draft);
  for (;;) {
    await askForUsage(options, prompt, draft);
    if (await checkDraft(app, draft)) break;
    if (options.yes) throw new AppError("rejected", "nothing was written, because a check failed; see above");
    if (!(await prompt.confirm("A check failed. Choose groupings and window again?"))) break;
  }
  await writeNew(app, configText(draft, schemaOf(app.configPath)));
  app.write(
    `\nwrote ${app.configPath}. Numbers go to ${url === undefined ? "the embedded database in ./data" : "the database at DATABASE_URL"}`,
  );
  app.write(url === undefined ? "; set DATABASE_URL for a Postgres server.\n" : ".\n");
  app.write(`Next:\n  ${nextCommands(app, url === undefined).join("\n  ")}\n`);
  return 0;
}

function configExists({ configPath }: App): AppError {
  return new AppError("config", `${configPath} exists: edit it, or write a new one with --config FILE`);
}

/** Somebody may have written the file while this command asked. */
async function writeNew(app: App, text: string): Promise<void> {
  await writeFile(app.configPath, text, { flag: "wx" }).catch((cause: unknown) => {
    if (systemCode(cause) === "EEXIST") throw configExists(app);
    throw new AppError("delivery", `the file ${app.configPath} could not be written`, { cause });
  });
}

function nextCommands(app: App, isEmbedded: boolean): string[] {
  const config = app.configPath === "jobs.config.json" ? "" : ` --config ${app.configPath}`;
  return [`migrate${config}`, `export${config}`, `start${isEmbedded ? " --embedded" : ""}${config}`].map(
    (command) => `${COMMAND} ${command}`,
  );
}

type Prompt = Disposable & {
  /** Asks until `accept` returns. An AppError that `accept` throws is shown, and the question is asked again; with --yes it is thrown. */
  readonly ask: <T>(question: string, defaultAnswer: string, accept: (answer: string) => Promise<T>) => Promise<T>;
  readonly confirm: (question: string) => Promise<boolean>;
};

function openPrompt(app: App, takesDefaults: boolean): Prompt {
  if (!takesDefaults && process.stdin.isTTY !== true) {
    throw new AppError(
      "config",
      "init asks at a terminal, and there is none: give --yes with the options it needs (init --help)",
    );
  }
  const lines = takesDefaults ? undefined : createInterface({ input: process.stdin, output: process.stderr });
  // Otherwise Ctrl-C would only close the interface, and on Node 22 the question would wait forever.
  lines?.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  const ended = new AbortController();
  lines?.once("close", () => ended.abort(new AppError("stopped", "the input ended before the last answer")));
  const signal = AbortSignal.any([app.signal, ended.signal]);
  const question = async (text: string) => {
    try {
      return (await lines?.question(text, { signal })) ?? "";
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  };
  return {
    async ask(text, defaultAnswer, accept) {
      for (;;) {
        const answer = (await question(`${text} [${defaultAnswer}]: `)).trim() || defaultAnswer;
        try {
          return await accept(answer);
        } catch (error) {
          if (takesDefaults || !(error instanceof AppError) || error.code === "stopped") throw error;
          process.stderr.write(app.scrubber.scrub(`  ${errorText(error)}\n`));
        }
      }
    },
    confirm: async (text) => /^(y|yes|)$/i.test((await question(`${text} [yes]: `)).trim()),
    [Symbol.dispose]: () => lines?.close(),
  };
}

/** Neither the address nor the key can be checked without the other, so a call with both checks them. */
async function askForService(app: App, options: InitOptions, prompt: Prompt): Promise<Draft> {
  const draft: Draft = {
    ...DEFAULTS,
    authScheme: "Token",
    project: { id: "unknown", name: "unknown" },
  };
  draft.baseUrl = await prompt.ask("The service's address", options.baseUrl ?? DEFAULTS.baseUrl, async (baseUrl) => {
    parseDraft(app, { ...draft, baseUrl });
    return baseUrl;
  });
  draft.keyVariable = await prompt.ask(
    "The environment variable that holds the API key",
    options.keyVariable ?? DEFAULTS.keyVariable,
    async (keyVariable) => {
      const key = app.env[keyVariable];
      if (!key) {
        // Somebody may have given the key itself.
        const isName = /^[A-Z][A-Z0-9_]*$/.test(keyVariable) && !isKeyLike(keyVariable);
        const message = isName
          ? `${keyVariable} is not set: set it to the API key, and run init again`
          : "expected the name of an environment variable, such as USAGE_EXPORT_KEY, that holds the API key; what was given is no name of one that is set, and is not shown, as it may be a key";
        throw new AppError("config", message);
      }
      app.scrubber.add(new Secret(key));
      draft.authScheme = await workingScheme(app, { ...draft, keyVariable });
      return keyVariable;
    },
  );
  return draft;
}

/** The first of AUTH_SCHEMES with which the service accepts the key. If there is no such scheme, throws the error of the first one. */
async function workingScheme(app: App, draft: Draft): Promise<AuthScheme> {
  let refusal: unknown;
  for (const authScheme of AUTH_SCHEMES) {
    try {
      await withService(app, { ...draft, authScheme }, (service, key) => fetchToken(service, key, app.signal));
      return authScheme;
    } catch (error) {
      refusal ??= error;
      if (!(error instanceof AppError) || !isKeyRejected(error)) throw error;
    }
  }
  throw refusal;
}

/** A key may see thousands of projects. */
const PROJECTS_SHOWN_MAX = 20;

async function askForProject(app: App, options: InitOptions, prompt: Prompt, draft: Draft): Promise<Project> {
  const list = (service: Service, key: Secret) => fetchProjects(service, key, app.signal);
  const listed = await withService(app, draft, list).catch((error: unknown) => {
    // Without the list the id can still be given.
    if (error instanceof AppError && error.code !== "stopped") return [];
    throw error;
  });
  const shown = listed.slice(0, PROJECTS_SHOWN_MAX);
  const lines = shown.map(({ id, name }, i) => `  ${i + 1}  ${toPrintableLine(name)} (${toPrintableLine(id)})\n`);
  if (listed.length > shown.length) lines.push(`  and ${listed.length - shown.length} more: give the id of one\n`);
  if (options.yes !== true) process.stderr.write(lines.join("") || "  the service does not list its projects\n");
  const [only] = listed.length === 1 ? listed : [];
  return prompt.ask("The project: its number or id", options.project ?? only?.id ?? "", async (answer) => {
    const project = listed[Number(answer) - 1] ?? listed.find(({ id, name }) => id === answer || name === answer);
    if (project) return project;
    if (listed.length > 0) {
      const ids = listed.map(({ id }) => toPrintableLine(id));
      const got = answer === "" ? "; choose one with --project" : `, got ${JSON.stringify(answer)}`;
      throw new AppError("config", `expected a project of this key (${firstNames(ids, PROJECTS_SHOWN_MAX)})${got}`);
    }
    if (answer === "") {
      throw new AppError("config", "the service lists no project of this key: give the id of one with --project");
    }
    parseDraft(app, { ...draft, project: { id: answer, name: answer } });
    return { id: answer, name: answer };
  });
}

async function askForUsage(options: InitOptions, prompt: Prompt, draft: Draft): Promise<void> {
  const groupings = (options.grouping ?? DEFAULTS.groupings).join(",");
  draft.groupings = await prompt.ask(`Groupings, of ${GROUPINGS.join(", ")}`, groupings, async (answer) => {
    const chosen = answer.split(/[\s,]+/);
    const unknown = chosen.find((one) => !GROUPINGS.some((grouping) => grouping === one));
    if (unknown !== undefined) throw new AppError("config", `${JSON.stringify(unknown)} is no grouping`);
    return chosen;
  });
  draft.days = await prompt.ask(
    "How many days to read again each night",
    String(options.days ?? DEFAULTS.days),
    readDays,
  );
}

async function readDays(answer: string): Promise<number> {
  const days = Number(answer);
  if (!Number.isInteger(days) || days < 1 || days > 366) {
    throw new AppError("config", `expected a number of days from 1 to 366, got ${JSON.stringify(answer)}`);
  }
  return days;
}

/** Runs the checks of `check` on the project; true if none failed. */
async function checkDraft(app: App, draft: Draft): Promise<boolean> {
  const config = parseDraft(app, draft);
  await using context = await openServiceContext(app, config, undefined);
  const [project] = config.projects;
  const findings = project ? await checkProject(context, project) : [];
  app.write(renderFindings({ of: `project ${draft.project.name}`, findings }));
  return findings.every(({ state }) => state !== "fail");
}

async function withService<T>(app: App, draft: Draft, work: (service: Service, key: Secret) => Promise<T>): Promise<T> {
  const service = await openServiceFor(app, parseDraft(app, draft), undefined);
  try {
    return await work(service, new Secret(app.env[draft.keyVariable] ?? ""));
  } finally {
    await service.close();
  }
}

function parseDraft(app: App, draft: Draft): Config {
  return parseConfig(configText(draft), {
    source: app.configPath,
    baseDir: path.dirname(path.resolve(app.configPath)),
  });
}

/** The path of the JSON Schema relative to the configuration's folder; undefined if the package is not installed in that folder. */
function schemaOf(configPath: string): string | undefined {
  const folder = path.dirname(path.resolve(configPath));
  const relative = path.relative(folder, path.join(PACKAGE_FOLDER, "jobs.config.schema.json"));
  const isInside = !relative.startsWith("..") && !path.isAbsolute(relative);
  return isInside ? `./${relative.replaceAll(path.sep, "/")}` : undefined;
}

/** The text of the configuration file, made from the answers. Optional fields that keep their default are left out. */
function configText({ baseUrl, authScheme, keyVariable, project, groupings, days }: Draft, schema?: string): string {
  const config = {
    ...(schema !== undefined && { $schema: schema }),
    service: { baseUrl, ...(authScheme !== "Token" && { authScheme }) },
    projects: [{ id: project.id, name: project.name, key: { env: keyVariable } }],
    exports: [{ name: "nightly", schedule: "15 2 * * *", projects: [project.name], window: { days }, groupings }],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}
