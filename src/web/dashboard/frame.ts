// What every page of the dashboard has around its sections: the navigation, the verdict, and the choice of days and project. All links are
// relative, because a proxy may serve the pages under another path.

import type { Condition } from "../../facts/conditions.ts";
import type { HealthState } from "../../facts/health.ts";
import { counted, periodHtml } from "../../show/format.ts";
import { type Html, html, joinHtml, nameHtml } from "../../show/html.ts";
import {
  ADDING_UP_WARNING,
  contentSecurityPolicy,
  htmlDocument,
  type PageOptions,
  type Section,
} from "../../show/page.ts";
import { COMPARISONS, dayCount, type Window } from "../../usage/days.ts";
import { scriptHead } from "../assets.ts";
import type { Page, Readiness } from "../page.ts";
import { findProjects, knownProjects, projectValue } from "../projects.ts";
import { dashboardProblems, verdictHtml } from "./verdict.ts";
import { comparedWindow, fixedView, PERIOD_TITLES, type View, viewParameters, viewQuery } from "./view.ts";

type PageTraits = {
  readonly path: string;
  readonly title: string;
  /** What it can be narrowed by. */
  readonly choices: readonly ("period" | "project" | "compare")[];
  /** The parameters that only this page has. */
  readonly own?: readonly string[];
};

export const PAGES = {
  overview: { path: "/", title: "Overview", choices: ["period", "project", "compare"], own: ["by"] },
  usage: { path: "/usage", title: "Usage & cost", choices: ["period", "project", "compare"] },
  health: {
    path: "/data-health",
    title: "Data health",
    choices: ["period", "project"],
    own: ["job", "outcome", "page", "search"],
  },
  run: { path: "/run", title: "Run", choices: [], own: ["outcome", "page"] },
} as const satisfies Readonly<Record<string, PageTraits>>;

export type PageName = keyof typeof PAGES;

const NAVIGATION: readonly PageName[] = ["overview", "usage", "health"];

/** The page with the section that a condition is about. */
const CONDITION_PAGES: Readonly<Record<Condition["section"], PageName>> = {
  jobs: "health",
  runs: "health",
  gaps: "health",
  keys: "health",
  budgets: "overview",
  anomalies: "health",
};

export function ownParameters(page: PageName): readonly string[] {
  const traits: PageTraits = PAGES[page];
  return traits.own ?? [];
}

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

export function framePage({
  page,
  view,
  health,
  readiness,
  title,
  sections,
  lead,
  notice,
  controls,
  status = 200,
}: FrameContent): Page {
  const problems = dashboardProblems(health, readiness);
  const shownTitle = title ?? PAGES[page].title;
  const href = (section: Condition["section"]) =>
    `${pageHref(CONDITION_PAGES[section])}${viewQuery(shared(view))}#${section}`;
  const header = html`${navigation(page, view, health)}
${lead}<div id="verdict">${verdictHtml(problems, health, { href, isOpen: page === "overview" })}</div>
<div class="heading"><h1>${shownTitle}</h1>${PAGES[page].choices.length > 0 ? html`${subtitle(page, view, health)}${periodLinks(page, view)}` : undefined}</div>
${toolbar(page, view, health, controls)}${notice}`;
  const isLive = view.period.live || PAGES[page].choices.length === 0;
  const well = health.jobs.length === 0 ? "No job is configured" : "All is well";
  const verdict = problems.length === 0 ? well : "Not all is well";
  const head = scriptHead("", isLive);
  return {
    ...htmlPage(status, { title: `${verdict}: ${shownTitle}, usage-export`, header, sections, head }),
    asOf: [asOfText(health)],
  };
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
  const footer = html`<p>Nothing can be changed here. ${ADDING_UP_WARNING}</p>`;
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: htmlDocument({ ...options, footer, served: true }),
    headers: {
      "content-security-policy": `${contentSecurityPolicy({ served: true })}; frame-ancestors 'none'`,
      ...headers,
    },
  };
}

/** What a link to another page keeps. */
function shared(view: View): View {
  return { ...view, id: undefined, more: [] };
}

function asOfText({ readAt }: HealthState): string {
  return `${readAt.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function navigation(page: PageName, view: View, health: HealthState): Html {
  const query = viewQuery(shared(view));
  const links = NAVIGATION.map((name) => {
    const isCurrent = name === page || (name === "health" && page === "run");
    return html`<li><a href="${pageHref(name)}${query}"${isCurrent ? html` aria-current="page"` : undefined}>${PAGES[name].title}</a></li>`;
  });
  return html`<div class="bar"><a class="brand" href="${pageHref("overview")}">usage-export</a>
<nav aria-label="Pages"><ul>${links}</ul></nav>
<p class="as-of">as of <time id="as-of">${asOfText(health)}</time></p></div>`;
}

function subtitle(page: PageName, view: View, health: HealthState): Html {
  const { period, project } = view;
  const name = health.projects.find(({ projectId }) => projectId === project)?.project ?? project;
  const compared = canChoose(page, "compare") ? comparedWindow(view) : undefined;
  return html`<p class="subtitle">${joinHtml(
    [
      html`${periodHtml(period)} (${counted(dayCount(period), "day")})`,
      name === undefined ? "all projects" : html`project ${nameHtml(name)}`,
      ...(compared ? [html`compared with ${periodHtml(compared)}${daysOfCompared(compared, period)}`] : []),
    ],
    " · ",
  )}</p>`;
}

/** A month may have more days than the one before. */
function daysOfCompared(compared: Window, period: Window): string | undefined {
  return dayCount(compared) === dayCount(period) ? undefined : ` (${counted(dayCount(compared), "day")})`;
}

function canChoose(page: PageName, choice: PageTraits["choices"][number]): boolean {
  const { choices }: PageTraits = PAGES[page];
  return choices.includes(choice);
}

/** More projects are not listed: a part of a name is typed, and the page then offers the projects that have it. */
const PROJECTS_LISTED_MAX = 100;
const COMPARISON_TITLES = {
  before: "the period before",
  year: "a year before",
  none: "nothing",
};

function toolbar(
  page: PageName,
  view: View,
  health: HealthState,
  controls: FrameContent["controls"],
): Html | undefined {
  if (PAGES[page].choices.length === 0) return undefined;
  const { period, compare } = view;
  const here = pageHref(page);
  const choices = Object.entries(PERIOD_TITLES).map(([name, title]) => {
    const isCurrent = name === period.name;
    const href = `${here}${viewQuery(view, { period: { ...period, name } })}`;
    return html`<li><a href="${href}"${isCurrent ? html` aria-current="true"` : undefined}>${title}</a></li>`;
  });
  const isFixed = period.name === undefined;
  const more = (view.more ?? []).filter(([name]) => !controls?.names.includes(name));
  const keep = isFixed ? more : viewParameters({ ...view, project: undefined, compare: "before", id: undefined, more });
  const comparison = canChoose(page, "compare")
    ? html`<label>Compare with <select name="compare">${COMPARISONS.map((one) => option(one, COMPARISON_TITLES[one], one === compare))}</select></label>
`
    : undefined;
  return html`<div class="toolbar"><ul class="choices" aria-label="Period">${choices}</ul>
<form action="${here}" method="get" autocomplete="off">${keep.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<label>From <input type="date" name="from" value="${isFixed ? period.start : undefined}"></label>
<label>to <input type="date" name="to" value="${isFixed ? period.end : undefined}"></label>
${projectField(view, health)}${comparison}${controls?.fields}<button>Show</button></form></div>
`;
}

function periodLinks(page: PageName, view: View): Html {
  const { name } = view.period;
  const fixed = fixedView(view);
  const keep = `${pageHref(page)}${viewQuery(fixed)}`;
  const report = viewQuery(fixed, { id: undefined, more: [] });
  return html`<p class="links">${name === undefined ? undefined : html`<a href="${keep}">Link to these days</a> · `}<a href="./report.html${report}">Download report</a></p>`;
}

function projectField({ project }: View, health: HealthState): Html | undefined {
  const known = knownProjects(health.projects);
  if (known.length < 2 && project === undefined) return undefined;
  if (known.length > PROJECTS_LISTED_MAX)
    return html`<label>Project <input type="search" name="project" value="${project}" placeholder="part of a name" spellcheck="false"></label>
`;
  const options = findProjects(known, "").map((one) => {
    const value = projectValue(one, known);
    const title = value === one.name ? value : `${one.name} (${one.id})`;
    return option(value, title, project === one.id || project === value);
  });
  // A name that several projects share is no project's own value. Unchosen, the next Show would ask for all projects.
  const isListed = known.some((one) => project === one.id || project === projectValue(one, known));
  const asked = project === undefined || isListed ? undefined : option(project, project, true);
  return html`<label>Project <select name="project"><option value="">all projects</option>${asked}${options}</select></label>
`;
}

function option(value: string, title: string, isChosen: boolean): Html {
  return html`<option value="${value}"${isChosen ? html` selected` : undefined}>${title}</option>`;
}
