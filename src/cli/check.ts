// The command `check`: checks the configuration, the database and, per project, what the service honours.

import { type App, databaseUrlOf, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { checkEncryption, checkInstallation } from "../db/connection/installation.ts";
import { AppError, errorText } from "../errors.ts";
import { adviseWindows, renderAdvice } from "../health/read-health.ts";
import type { Receivers } from "../health/webhook.ts";
import { requireStaticKeys } from "../jobs/api-keys.ts";
import { checkProject, type Finding } from "../jobs/check-project.ts";
import { FilterCheck } from "../jobs/filter-check.ts";
import { requireAccess, requireReceivers } from "../jobs/monitor-secrets.ts";
import { openServiceContext } from "../jobs/open-context.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { proxyOf } from "../proxy.ts";

type CheckOptions = { readonly offline?: boolean; readonly json?: boolean };
type FindingGroup = { readonly of: string; readonly findings: readonly Finding[] };

export async function runCheck(app: App, options: CheckOptions): Promise<number> {
  const config = await readConfig(app);
  databaseUrlOf(app.env);
  await requireStaticKeys(app, config);
  const receivers = await requireReceivers(app, config);
  if (config.rotations.length > 0) readMasterKeys(app.env);
  const file: Finding = { what: "file", state: "ok", text: app.configPath };
  const access: Finding[] = (await requireAccess(app, config))
    ? [{ what: "monitor.access", state: "ok", text: "its secret can be read" }]
    : [];
  const proxy = proxyOf(app.env);
  const way: Finding[] = proxy
    ? [{ what: "proxy", state: "ok", text: `https goes through ${proxy.name}, but to what NO_PROXY names` }]
    : [];
  const findings = [file, ...addressFindings(receivers), ...access, ...way];
  const all: FindingGroup[] = [{ of: "configuration", findings }];
  if (!options.offline) all.push(...(await checkOnline(app, config)));
  app.write(options.json ? `${JSON.stringify(all)}\n` : all.map(renderFindings).join(""));
  return all.every(({ findings }) => findings.every(({ state }) => state !== "fail")) ? 0 : 1;
}

function addressFindings({ webhook, deadMan }: Receivers): Finding[] {
  return [webhook, deadMan].flatMap((receiver) =>
    receiver ? [{ what: receiver.path, state: "ok", text: "its address can be read; nothing was sent there" }] : [],
  );
}

/** A database that is away is one finding, and no reason to leave the projects unchecked. */
async function checkOnline(app: App, config: Config): Promise<FindingGroup[]> {
  const of = app.env.DATABASE_URL ? "database at DATABASE_URL" : "embedded database";
  try {
    return await withDatabase(app, async (db) => [
      { of, findings: [...(await checkDatabase(app, db)), ...(await checkWindows(db, config))] },
      ...(await checkProjects(app, config, db)),
    ]);
  } catch (error) {
    app.signal.throwIfAborted();
    if (error instanceof AppError && error.code === "config") throw error;
    const findings: Finding[] = [{ what: "connection", state: "fail", text: errorText(error) }];
    return [{ of, findings }, ...(await checkProjects(app, config, undefined))];
  }
}

/** More than this, and late usage or the window would be off by a day around midnight. */
const SKEW_MS_MAX = 60_000;

async function checkDatabase(app: App, db: Database): Promise<Finding[]> {
  const skewMs = Math.abs((await databaseNow(db)).getTime() - Date.now());
  const clock: Finding =
    skewMs <= SKEW_MS_MAX
      ? { what: "clock", state: "ok", text: "agrees with this machine's" }
      : { what: "clock", state: "warn", text: `differs from this machine's by ${Math.round(skewMs / 1000)} s` };
  const url = databaseUrlOf(app.env);
  // The embedded database has no other users and no network connection.
  const found =
    url === undefined ? [] : [...(await checkInstallation(db)), ...checkEncryption(new URL(url), app.env.PGSSLMODE)];
  return [{ what: "schema", state: "ok", text: "up to date" }, clock, ...found];
}

/** Says nothing where a window fits, or too little is stored to tell. */
async function checkWindows(db: Database, { exports }: Config): Promise<Finding[]> {
  const advice = await adviseWindows(db, exports);
  return advice.map((one) => ({ what: `window of ${one.job}`, state: "warn", text: renderAdvice(one) }));
}

async function checkProjects(app: App, config: Config, db: Database | undefined): Promise<FindingGroup[]> {
  await using context = await openServiceContext(app, config, db);
  const filterCheck = new FilterCheck(context);
  const groups: FindingGroup[] = [];
  for (const project of config.projects) {
    groups.push({ of: `project ${project.name}`, findings: await checkProject(context, filterCheck, project) });
  }
  return groups;
}

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

export function renderFindings({ of, findings }: FindingGroup): string {
  // One cause may affect many checks and is reported once. Request ids differ each time, so the comparison leaves them out.
  const told = ({ state, text }: Finding) =>
    state === "ok" ? Symbol() : `${state} ${text.replaceAll(/\(request id [^)]*\)/g, "")}`;
  const lines = [...Map.groupBy(findings, told).values()].flatMap((same) => {
    const [first] = same;
    return first ? [`  ${MARKS[first.state]} ${same.map(({ what }) => what).join(", ")}: ${first.text}`] : [];
  });
  return [of, ...lines, ""].join("\n");
}
