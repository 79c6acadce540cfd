// What every page of the dashboard has around its sections: the navigation, the verdict, and the choice of days and project. All links are
// relative, because a proxy may serve the pages under another path. Pure.

import type { Condition } from "../../facts/conditions.ts";
import type { HealthState } from "../../facts/health.ts";
import { counted, dayLabel, periodHtml } from "../../show/format.ts";
import { copyLink, type Html, html, joinHtml, nameHtml, optionHtml } from "../../show/html.ts";
import {
  ADDING_UP_WARNING,
  contentSecurityPolicy,
  htmlDocument,
  type PageOptions,
  type Section,
} from "../../show/page.ts";
import { COMPARISONS, dayCount } from "../../usage/days.ts";
import { scriptHead } from "../assets.ts";
import type { Page, Readiness } from "../page.ts";
import { knownProjects, projectField } from "../projects.ts";
import { comparedWindow, fixedView, PERIOD_TITLES, type View, viewParameters, viewQuery } from "../question.ts";

/** `choices`: what the page can be narrowed by. */
export const PAGES = {
  overview: { path: "/", title: "Overview", choices: ["period", "project", "compare"] },
  usage: { path: "/usage", title: "Usage & cost", choices: ["period", "project", "compare"] },
  health: { path: "/data-health", title: "Data health", choices: ["period", "project"] },
  run: { path: "/run", title: "Run", choices: [] },
} as const satisfies Readonly<
  Record<string, { path: string; title: string; choices: readonly ("period" | "project" | "compare")[] }>
>;

export type PageName = keyof typeof PAGES;

const NAVIGATION: readonly PageName[] = ["overview", "usage", "health"];

/** The relative link to a page, without a query. */
export function pageHref(page: PageName): string {
  return `.${PAGES[page].path}`;
}

export type FrameContent = {
  readonly page: PageName;
  readonly view: View;
  readonly health: HealthState;
  readonly readiness: Readiness;
  /** Left out, it is the page's. */
  readonly title?: string;
  readonly sections: readonly Section[];
  /** What matters most, above everything else. */
  readonly lead?: Html | undefined;
  /** Shown above the sections. */
  readonly notice?: Html | undefined;
  /** More fields for the form that chooses the days. `names` are those of the parameters that they set. */
  readonly controls?: { readonly names: readonly string[]; readonly fields: Html } | undefined;
  readonly status?: number;
};

export type PageContent = Pick<FrameContent, "sections" | "title" | "lead" | "notice" | "controls">;

export function framePage(content: FrameContent): Page {
  const { page, view, health, readiness, sections, lead, notice, status = 200 } = content;
  const title = content.title ?? PAGES[page].title;
  const problems = problemsOf(health, readiness);
  const hasChoices = PAGES[page].choices.length > 0;
  const header = html`${navigation(page, view, health)}
${lead}<div id="verdict">${verdictHtml(problems, content)}</div>
<div class="heading"><h1>${title}</h1>${hasChoices ? html`${subtitle(page, view, health)}${pageLinks(page, view)}` : undefined}</div>
${hasChoices ? toolbar(content) : undefined}${notice}`;
  const well = health.jobs.length === 0 ? "No job is configured" : "All is well";
  const verdict = problems.length === 0 ? well : "Not all is well";
  return htmlPage(status, { title: `${verdict}: ${title}, usage-export`, header, sections, head: scriptHead() });
}

/** Without its navigation the page says why it can't be shown. */
export function framelessPage(status: number, title: string, lead: Html, headers: Page["headers"] = {}): Page {
  const header = html`<div class="heading"><h1>${title}</h1></div>${lead}`;
  return htmlPage(status, { title: `${title}, usage-export`, header, sections: [] }, headers);
}

function htmlPage(
  status: number,
  options: Omit<PageOptions, "footer" | "served">,
  headers: Page["headers"] = {},
): Page {
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: htmlDocument({ ...options, footer: html`<p>${ADDING_UP_WARNING}</p>`, served: true }),
    headers: {
      "content-security-policy": `${contentSecurityPolicy({ served: true })}; frame-ancestors 'none'`,
      ...headers,
    },
  };
}

/** What a link to another page keeps. */
function shared(view: View): View {
  return { ...view, more: [] };
}

function navigation(page: PageName, view: View, { readAt }: HealthState): Html {
  const query = viewQuery(shared(view));
  const links = NAVIGATION.map((name) => {
    const isCurrent = name === page || (name === "health" && page === "run");
    return html`<li><a href="${pageHref(name)}${query}"${isCurrent ? html` aria-current="page"` : undefined}>${PAGES[name].title}</a></li>`;
  });
  return html`<div class="bar"><a class="brand" href="${pageHref("overview")}">usage-export</a>
<nav aria-label="Pages"><ul>${links}</ul></nav>
<p class="as-of">as of <time>${readAt.toISOString().slice(0, 16).replace("T", " ")} UTC</time></p></div>`;
}

// The verdict: whether a person is needed, and for what.

type Problem = { readonly text: string; readonly section?: Condition["section"] };

/** First why the worker that shows the page can't work, then the conditions for which `status` would end with 1. */
function problemsOf(health: HealthState, readiness: Readiness): readonly Problem[] {
  return [
    ...readiness.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...health.conditions.filter(({ isWrong }) => isWrong),
  ];
}

/** "All data up to Nov 22 is in." */
function wellText({ projects }: Pick<HealthState, "projects">): string {
  const days = projects.flatMap(({ series, freshThrough }) =>
    series > 0 && freshThrough !== null ? [freshThrough] : [],
  );
  const [oldest] = days.sort();
  return oldest === undefined ? "Nothing is due yet." : `All data up to ${dayLabel(oldest)} is in.`;
}

function verdictHtml(problems: readonly Problem[], { page, view, health }: FrameContent): Html {
  const href = (section: Condition["section"]) => {
    const [to, anchor]: readonly [PageName, string] =
      section === "budgets"
        ? ["overview", section]
        : section === "anomalies"
          ? ["usage", "usage"]
          : ["health", section];
    return `${pageHref(to)}${viewQuery(shared(view))}#${anchor}`;
  };
  const notice = (kind: string, title: string, items: readonly Problem[], open: boolean) => {
    if (items.length === 0) return undefined;
    const list = items.map(({ text, section }) =>
      section === undefined ? html`<li>${text}</li>` : html`<li><a href="${href(section)}">${text}</a></li>`,
    );
    return html`<details class="notice ${kind}"${open ? html` open` : undefined}><summary><strong>${title}</strong></summary>
<ul>${list}</ul></details>
`;
  };
  const reminders = health.conditions.filter(({ isWrong }) => !isWrong);
  const well =
    health.jobs.length === 0
      ? html`<div class="notice none"><strong>No job is configured.</strong> Nothing is due before an export is added to <code>jobs.config.json</code>; <code>usage-export start</code> then runs it on schedule.</div>
`
      : html`<p class="well"><strong>${wellText(health)}</strong></p>
`;
  const wrong = notice("bad", `${counted(problems.length, "thing")} to look at`, problems, page === "overview");
  return html`${wrong ?? well}${notice("warn", `${counted(reminders.length, "note")} on usage, budgets and keys`, reminders, false)}`;
}

// The choice of days, project and comparison.

function subtitle(page: PageName, view: View, health: HealthState): Html {
  const { period, project } = view;
  const name = health.projects.find(({ projectId }) => projectId === project)?.project ?? project;
  const compared = canCompare(page) ? comparedWindow(view) : undefined;
  // A month may have more days than the one before.
  const days =
    compared && dayCount(compared) !== dayCount(period) ? ` (${counted(dayCount(compared), "day")})` : undefined;
  return html`<p class="subtitle">${joinHtml(
    [
      html`${periodHtml(period)} (${counted(dayCount(period), "day")})`,
      name === undefined ? "all projects" : html`project ${nameHtml(name)}`,
      ...(compared ? [html`compared with ${periodHtml(compared)}${days}`] : []),
    ],
    " · ",
  )}</p>`;
}

function canCompare(page: PageName): boolean {
  return page === "overview" || page === "usage";
}

/** The links name the days, so that they lead to the same numbers tomorrow. */
function pageLinks(page: PageName, view: View): Html {
  const fixed = fixedView(view);
  return html`<p class="links">${copyLink("Copy link", `${pageHref(page)}${viewQuery(fixed)}`)} <a href="./report.html${viewQuery(shared(fixed))}">Download report</a></p>`;
}

const COMPARISON_TITLES = {
  before: "the period before",
  year: "a year before",
  none: "nothing",
};

function toolbar({ page, view, health, controls }: FrameContent): Html {
  const { period, compare } = view;
  const here = pageHref(page);
  const choices = Object.entries(PERIOD_TITLES).map(([name, title]) => {
    const isCurrent = name === period.name;
    const href = `${here}${viewQuery(view, { period: { ...period, name } })}`;
    return html`<li><a href="${href}"${isCurrent ? html` aria-current="true"` : undefined}>${title}</a></li>`;
  });
  const isFixed = period.name === undefined;
  const more = view.more.filter(([name]) => !controls?.names.includes(name));
  const keep = isFixed ? more : viewParameters({ ...view, project: undefined, compare: "before", more });
  const comparison = canCompare(page)
    ? html`<label>Compare with <select name="compare">${COMPARISONS.map((one) => optionHtml(one, COMPARISON_TITLES[one], one === compare))}</select></label>
`
    : undefined;
  return html`<div class="toolbar"><ul class="choices" aria-label="Period">${choices}</ul>
<form action="${here}" method="get" autocomplete="off">${keep.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<label>From <input type="date" name="from" value="${isFixed ? period.start : undefined}"></label>
<label>to <input type="date" name="to" value="${isFixed ? period.end : undefined}"></label>
${projectField(view.project, knownProjects(health.projects))}${comparison}${controls?.fields}<button>Show</button></form></div>
`;
}
