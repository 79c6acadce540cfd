import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { InvalidQuestion } from "../../../src/facts/question.ts";
import { type DashboardDeps, openDashboard, type PageData } from "../../../src/web/dashboard/pages.ts";
import type { Page } from "../../../src/web/page.ts";
import { makeAnswer, makeOverview } from "../../facts/sample-facts.ts";
import { healthState, makeProject } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";
import { pageData } from "./sample-pages.ts";

type Changes = Partial<Omit<DashboardDeps, "read">> & { readonly read?: Partial<DashboardDeps["read"]> };

/** A dashboard that records in `reads` the names of what its pages read, in order. */
function dashboard({ read, ...deps }: Changes = {}, limits?: Parameters<typeof openDashboard>[1]) {
  const reads: string[] = [];
  const data = pageData();
  const reader =
    <P extends keyof PageData>(page: P) =>
    async () => {
      reads.push(page);
      return data[page];
    };
  const pages = openDashboard(
    {
      log: pino({ enabled: false }),
      readiness: () => WELL,
      async readHealth() {
        reads.push("health state");
        return healthState();
      },
      async readReport({ period, project }) {
        reads.push(`report ${period.start} to ${period.end}`);
        if (project === "unknown") throw new InvalidQuestion("project: no such project");
        const total = makeAnswer({ question: { grouping: "none", project: project ?? null } });
        return { overview: makeOverview({ total }), budgets: [] };
      },
      ...deps,
      read: {
        ...{ overview: reader("overview"), usage: reader("usage"), health: reader("health"), run: reader("run") },
        ...read,
      },
    },
    limits,
  );
  const ask = async (path: string): Promise<Page> => {
    const [, name = "", query = ""] = /^([^?]*)\??(.*)$/.exec(path) ?? [];
    const answer = pages[name];
    if (!answer) throw new Error(`no page ${name}`);
    return answer(new URLSearchParams(query));
  };
  return { reads, ask };
}

const never = () => new Promise<never>(() => {});

test.each(["overview", "usage", "health", "run"] as const)(
  "the page %s reads only what it shows and the health state",
  async (page) => {
    const { reads, ask } = dashboard();
    const paths = { overview: "/", usage: "/usage", run: "/run?id=1", health: "/data-health" };
    expect(await ask(paths[page])).toMatchObject({ status: 200 });
    expect(reads.toSorted()).toEqual(["health state", page].sort());
  },
);

test("one reading of the health state serves all pages for only some seconds", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { reads, ask } = dashboard();
  await Promise.all([ask("/"), ask("/data-health")]);
  await ask("/run?id=1");
  expect(reads.splice(0).toSorted()).toEqual(["health", "health state", "overview", "run"]);
  vi.advanceTimersByTime(10_000);
  await ask("/");
  expect(reads.toSorted()).toEqual(["health state", "overview"]);
});

test("an invalid period is refused before anything is read", async () => {
  const { reads, ask } = dashboard();
  for (const path of ["/?period=1000", "/run?period=1000", "/report.html?from=2026-01-01"])
    expect(await ask(path), path).toMatchObject({ status: 400 });
  const { body } = await ask("/data-health?from=2026-01-01");
  expect(body).toMatch(/This address can't be shown\.[\s\S]*expected both from and to/);
  expect(body).toContain('<a href="./data-health">Show the newest days</a>');
  expect(reads).toEqual([]);
});

test("an unknown project and an unknown run are refused with a reason", async () => {
  const unknown = () => Promise.reject(new InvalidQuestion('project: no usage of a project "production-2"'));
  const { ask } = dashboard({ read: { overview: unknown, run: async () => undefined } });
  const reasons = {
    "/?project=production-2": "project: no usage of a project &quot;production-2&quot;",
    "/run?id=1": "id: there is no run 1",
  };
  for (const [path, reason] of Object.entries(reasons))
    expect(await ask(path)).toMatchObject({ status: 400, body: expect.stringContaining(reason) });
  expect((await ask("/run?id=1")).body).toContain('<a href="./data-health">Show the newest days</a>');
});

/** A health state with these projects; the number of each is its identifier. */
function withProjects(names: readonly string[]) {
  const projects = names.map((project, i) => makeProject({ project, projectId: String(i) }));
  return { readHealth: async () => healthState({ projects }) };
}

test("with thousands of projects, a page has a field for a name instead of a list", async () => {
  const { ask } = dashboard(withProjects(Array.from({ length: 5_000 }, (_, i) => `customer ${i}`)));
  const { body } = await ask("/data-health?project=customer+7");
  expect(body).toContain('name="project" value="customer 7"');
  expect(body.length).toBeLessThan(100_000);
});

test("a project name that is not unique or no longer used stays chosen in the form", async () => {
  const { ask } = dashboard(withProjects(["prod", "prod", "other"]));
  const { body } = await ask("/?project=prod");
  const [, options = ""] = /<select name="project">(.*?)<\/select>/.exec(body) ?? [];
  expect([...options.matchAll(/<option value="([^"]*)"( selected)?>([^<]*)/g)].map((one) => one.slice(1))).toEqual([
    ["", undefined, "all projects"],
    ["prod", " selected", "prod"],
    ["2", undefined, "other"],
    ["0", undefined, "prod (0)"],
    ["1", undefined, "prod (1)"],
  ]);
  expect((await dashboard(withProjects(["other"])).ask("/?project=prod")).body).toContain('value="prod" selected');
});

test("a project that is chosen by its name or its identifier is shown by its name", async () => {
  const { ask } = dashboard(withProjects(["prod", "prod-2"]));
  for (const project of ["prod-2", "1"]) {
    const { status, body } = await ask(`/?project=${project}`);
    expect([status, body.includes("project <bdi>prod-2</bdi>")]).toEqual([200, true]);
    expect(body).toContain('<option value="1" selected>prod-2<');
  }
});

test("the report file has the requested days and project", async () => {
  const { reads, ask } = dashboard();
  const file = await ask("/report.html?from=2026-01-01&to=2026-01-07&project=production");
  expect(file).toMatchObject({
    status: 200,
    headers: { "content-disposition": 'attachment; filename="usage-2026-01-01-2026-01-07.html"' },
  });
  expect(file.body).toContain("project <bdi>production</bdi>");
  expect(file.body).not.toMatch(/ href=(?!"data:)/);
  expect(reads).toEqual(["report 2026-01-01 to 2026-01-07"]);
  expect((await ask("/report.html")).body).toContain("all projects");
});

test("a report of an unknown project or with an unknown parameter is refused", async () => {
  const { ask } = dashboard();
  for (const wrong of ["project=unknown", "projcet=production", "id=1"])
    expect(await ask(`/report.html?${wrong}`), wrong).toMatchObject({ status: 400 });
});

test("while the database can't be reached, a page shows why the worker is not ready and why the reading failed", async () => {
  const { ask } = dashboard({
    readiness: () => ({ live: true, reasons: ["the database has not answered for 12 s"] }),
    readHealth: () => Promise.reject(new Error("connect ECONNREFUSED")),
  });
  const { body, ...answer } = await ask("/");
  expect(answer).toMatchObject({ status: 503, headers: { refresh: "10", "retry-after": "10" } });
  expect(body).toMatch(/stored data can't be read now\.[\s\S]*has not answered for 12 s[\s\S]*connect ECONNREFUSED/);
});

test("the reason why the dashboard or the report is not available is logged", async () => {
  const lines: string[] = [];
  const { ask } = dashboard({
    log: pino({ level: "warn" }, { write: (line: string) => void lines.push(line) }),
    readHealth: () => Promise.reject(new Error("permission denied for view coverage")),
    readReport: () => Promise.reject(new Error("permission denied for view usage")),
  });
  await ask("/");
  await ask("/report.html");
  const denied = ["coverage", "usage"].map((view) => expect.stringContaining(`permission denied for view ${view}`));
  expect(lines).toEqual(denied);
});

const failing = () => Promise.reject(new Error("canceling statement"));

test.each<[string, Changes, RegExp]>([
  ["the health state takes too long to read", { readHealth: never }, /not read within 0\.05 s/],
  ["the usage takes too long to read", { read: { overview: never } }, /Nothing is missing\.[\s\S]*could not be read\./],
  ["the usage can't be read", { read: { overview: failing } }, /Nothing is missing\.[\s\S]*canceling statement/],
])("if %s, the page says so", async (_, changes, said) => {
  const { ask } = dashboard(changes, 50);
  expect(await ask("/")).toMatchObject({ status: 503, body: expect.stringMatching(said) });
});
