import { type App, openServiceOf, readConfig, withDatabase } from "../app.ts";
import { databaseNow } from "../db/database.ts";
import { AppError, errorText } from "../errors.ts";
import { openKeys } from "../keys-in-use.ts";
import { type Finding, probeProject } from "../probe.ts";
import { dayOf } from "../usage/day.ts";

type CheckOptions = { readonly offline?: boolean; readonly json?: boolean };
type Findings = { readonly of: string; readonly findings: readonly Finding[] };

export async function runCheck(app: App, options: CheckOptions): Promise<number> {
  const config = await readConfig(app);
  const keyOf = await openKeys(app, config);
  const all: Findings[] = [{ of: "configuration", findings: [{ what: "file", state: "ok", text: app.configPath }] }];
  if (!options.offline) {
    all.push(await checkDatabase(app));
    const service = openServiceOf(app, config);
    try {
      for (const project of config.projects) {
        const probe = {
          service,
          project,
          key: await keyOf(project),
          jobs: config.exports,
          today: dayOf(new Date()),
          signal: app.signal,
        };
        all.push({ of: `project ${project.name}`, findings: await probeProject(probe) });
      }
    } finally {
      await service.close();
    }
  }
  app.write(options.json ? `${JSON.stringify(all)}\n` : all.map(render).join(""));
  return all.every(({ findings }) => findings.every(({ state }) => state !== "fail")) ? 0 : 1;
}

/** More than this, and late usage or the window would be off by a day around midnight. */
const SKEW_MS_MAX = 60_000;

async function checkDatabase(app: App): Promise<Findings> {
  const findings: Finding[] = [];
  try {
    const skewMs = await withDatabase(app, async (db) => Math.abs((await databaseNow(db)).getTime() - Date.now()));
    findings.push({ what: "schema", state: "ok", text: "up to date" });
    findings.push(
      skewMs <= SKEW_MS_MAX
        ? { what: "clock", state: "ok", text: "agrees with this machine's" }
        : { what: "clock", state: "warn", text: `differs from this machine's by ${Math.round(skewMs / 1000)} s` },
    );
  } catch (error) {
    if (error instanceof AppError && error.code === "config") throw error;
    findings.push({ what: "connection", state: "fail", text: errorText(error) });
  }
  return { of: app.env.DATABASE_URL ? "database at DATABASE_URL" : "embedded database", findings };
}

const MARKS = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const;

function render({ of, findings }: Findings): string {
  return [of, ...findings.map(({ what, state, text }) => `  ${MARKS[state]} ${what}: ${text}`)].join("\n").concat("\n");
}
