// What a page has around its sections: the HTML document with its content security policy; in the dashboard also the navigation, the verdict,
// and the choice of days and project. All links are relative, because a proxy may serve the pages under another path.

import { hash } from "node:crypto";
import type { Condition } from "../../facts/conditions.ts";
import type { HealthState } from "../../facts/health.ts";
import { capitalized, counted, dayLabel, instantText, periodText } from "../../show/format.ts";
import { choiceList, type Html, html, nameHtml, optionHtml, trustedHtml } from "../../show/html.ts";
import { STYLE } from "../../show/style.ts";
import { dayCount, type Window } from "../../usage/days.ts";
import { scriptPath } from "../assets.ts";
import type { Page, Readiness } from "../page.ts";
import { fixedView, PAGES, type PageName, PERIOD_TITLES, pageHref, type View, viewQuery } from "../url.ts";

/** A part of a page. The headings in its body begin at h3. */
export type Section = {
  /** Unique on the page, of letters and hyphens: the section's anchor. */
  readonly id: string;
  readonly title: string;
  readonly body: Html;
  /** CSS classes for its width on a wide screen; left out: the whole. "third half" is half the page, with the compact tables of "third". */
  readonly width?: "quarter" | "third" | "third half" | "two-thirds" | undefined;
  /** A link to more of it, beside the title. */
  readonly more?: Html;
  /** Only screen readers get the title. */
  readonly isTitleHidden?: boolean;
};

type DocumentOptions = { readonly title: string; readonly header: Html; readonly sections: readonly Section[] };

const ADDING_UP_WARNING =
  "Days and times are in UTC. Usage by model, by API key and by tags is the same usage, split in different ways: never add one to another.";

/** A page as the worker serves it, with the content security policy as a header. */
function servedPage(options: DocumentOptions, status: number, headers?: Page["headers"]): Page {
  const policy = "script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'";
  const head = html`<script type="module" src="${scriptPath()}"></script>\n`;
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: documentText(options, head, html`<p>${ADDING_UP_WARNING}</p>`),
    headers: { "content-security-policy": `${STYLE_POLICY}; ${policy}`, ...headers },
  };
}

/** The report as one file, with script and policy in it. The same options make the same bytes. */
export function reportDocument(options: DocumentOptions, madeBy: string, script: string): string {
  // Escaped, so that nothing in the script ends its element.
  const inline = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const policy = `${STYLE_POLICY}; script-src '${hashOf(inline)}'; img-src data:; form-action 'none'`;
  const head = html`<meta http-equiv="Content-Security-Policy" content="${trustedHtml(policy)}">\n`;
  const footer = html`<p>${madeBy} ${ADDING_UP_WARNING}</p><script type="module">${trustedHtml(inline)}</script>`;
  return documentText(options, head, footer);
}

function hashOf(text: string): string {
  return `sha256-${hash("sha256", text, "base64")}`;
}

const STYLE_POLICY = `default-src 'none'; style-src '${hashOf(STYLE)}'; base-uri 'none'`;

/** Makes the whole document. Its icon is empty, because a browser would otherwise request one. */
function documentText({ title, header, sections }: DocumentOptions, head: Html, footer: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${trustedHtml(STYLE)}</style>
</head>
<body>
<header>
${header}
</header>
<main id="main">
${sections.map(sectionHtml)}
</main>
<footer>
${footer}
</footer>
</body>
</html>
`.toString();
}

function sectionHtml({ id, title, body, width, more, isTitleHidden }: Section): Html {
  const heading = html`<h2 id="${id}-title"${isTitleHidden && html` class="unseen"`}>${title}</h2>`;
  return html`<section id="${id}" aria-labelledby="${id}-title"${width && html` class="${width}"`}>
${more ? html`<div class="title">${heading}${more}</div>` : heading}
${body}
</section>\n`;
}

export type PageContent = {
  /** Given if the page shows another view than the URL asked for. */
  readonly view?: View;
  /** Given if it is not the title of PAGES. */
  readonly title?: string;
  readonly sections: readonly Section[];
  /** What matters most, right below the navigation. */
  readonly lead?: Html | undefined;
  /** Between the choice of days and project, and the sections. */
  readonly notice?: Html | undefined;
  /** The period that the page's numbers are compared with, if they are. */
  readonly compared?: Window | undefined;
  /** Fields that the page adds to the form of days and project, and the names of the parameters that they set. */
  readonly controls?: { readonly names: readonly string[]; readonly fields: Html } | undefined;
};

export type FrameContent = PageContent & {
  readonly page: PageName;
  readonly view: View;
  readonly health: HealthState;
  readonly readiness: Readiness;
  readonly status?: number;
};

export function framePage(content: FrameContent): Page {
  const { page, view, health, readiness, sections, lead, notice, status = 200 } = content;
  const title = content.title ?? PAGES[page].title;
  const problems = problemsOf(health, readiness);
  // Before anything is read there is nothing to choose. But a person who chose a project without numbers must still get to the others.
  const isEmpty = sections.length === 0 && notice === undefined && view.project === undefined;
  const hasChoices = page !== "run" && !isEmpty;
  const header = html`${navigation(page, view, health)}
${lead}<div id="verdict">${verdictHtml(problems, content)}</div>
<div class="heading"><h1>${title}</h1>${hasChoices && html`${subtitle(content)}${pageLinks(page, view)}`}</div>
${hasChoices && toolbar(content)}${notice}`;
  const well = health.jobs.length === 0 ? "No job is configured" : "All is well";
  const verdict = problems.length === 0 ? well : "Not all is well";
  return servedPage({ title: `${verdict}: ${title}, usage-export`, header, sections }, status);
}

/** A page without navigation. Its lead says why the requested page can't be shown. */
export function framelessPage(status: number, title: string, lead: Html, headers?: Page["headers"]): Page {
  const header = html`<div class="heading"><h1>${title}</h1></div>${lead}`;
  return servedPage({ title: `${title}, usage-export`, header, sections: [] }, status, headers);
}

function navigation(page: PageName, view: View, { readAt }: HealthState): Html {
  const links = (["overview", "usage", "health"] as const).map((name) => {
    const isCurrent = name === page || (name === "health" && page === "run");
    return html`<li><a href="${pageHref(name, view)}"${isCurrent && html` aria-current="page"`}>${PAGES[name].title}</a></li>`;
  });
  return html`<div class="bar"><a class="brand" href="${pageHref("overview")}">usage-export</a>
<nav aria-label="Pages"><ul>${links}</ul></nav>
<p class="as-of">as of <time>${instantText(readAt)}</time></p></div>`;
}

type Problem = { readonly text: string; readonly section?: Condition["section"] };

/** Why the worker that shows the page can't work, then the conditions that make the command `status` exit with 1. */
function problemsOf(health: HealthState, readiness: Readiness): readonly Problem[] {
  return [
    ...readiness.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...health.conditions.filter(({ isWrong }) => isWrong),
  ];
}

/** "All data up to Nov 22 is in.", or what to do before anything is read. */
function wellHtml({ jobs, slices, projects }: HealthState): Html {
  if (jobs.length === 0)
    return html`<div class="notice none"><strong>No job is configured.</strong> Add an export to <code>jobs.config.json</code>; <code>usage-export start</code> then runs it on schedule.</div>\n`;
  if (slices.complete === 0 && jobs.every(({ lastRun }) => !lastRun))
    return html`<div class="notice none"><strong>There are no numbers yet.</strong> Run <code>usage-export export</code> to read usage now, or <code>usage-export start</code> to read it on schedule.</div>\n`;
  const freshDays = projects.filter(({ series }) => series > 0).map(({ freshThrough }) => freshThrough);
  const [oldest] = freshDays.filter((day) => day !== null).sort();
  // A project without a due day, such as one that no run has read yet, may have no data.
  const all = freshDays.includes(null) ? "Where days are due, all" : "All";
  return html`<p class="well"><strong>${oldest === undefined ? "Nothing is missing." : `${all} data up to ${dayLabel(oldest)} is in.`}</strong></p>\n`;
}

const NOTE_TOPICS: Partial<Record<Condition["section"], string>> = { anomalies: "unusual usage", keys: "API keys" };

function notesTitle(notes: readonly Condition[]): string {
  const topics = new Set(notes.map(({ section }) => NOTE_TOPICS[section] ?? section));
  return `${counted(notes.length, "note")} on ${[...topics].join(", ")}`;
}

/** The page Data health has the sections of the other conditions. */
const SECTIONS_ELSEWHERE: Partial<Record<Condition["section"], { to: PageName; anchor: string }>> = {
  budgets: { to: "overview", anchor: "budgets" },
  anomalies: { to: "usage", anchor: "usage" },
};

function verdictHtml(problems: readonly Problem[], { page, view, health }: FrameContent): Html {
  const href = (section: Condition["section"]) => {
    const { to, anchor } = SECTIONS_ELSEWHERE[section] ?? { to: "health", anchor: section };
    return `${pageHref(to, view)}#${anchor}`;
  };
  const notice = (kind: string, title: string, items: readonly Problem[], isOpen: boolean) => {
    if (items.length === 0) return undefined;
    const texts = items.map(({ text, section }) =>
      section === undefined ? capitalized(text) : html`<a href="${href(section)}">${capitalized(text)}</a>`,
    );
    if (kind === "bad" && texts.length === 1) return html`<div class="notice bad">${texts}</div>\n`;
    return html`<details class="notice ${kind}"${isOpen && html` open`}><summary><strong>${title}</strong></summary>
<ul>${texts.map((one) => html`<li>${one}</li>`)}</ul></details>\n`;
  };
  const notes = health.conditions.filter(({ isWrong }) => !isWrong);
  // Closed on the page Usage & cost, so that its answer is in sight.
  const wrong = notice("bad", `${counted(problems.length, "thing")} to look at`, problems, page !== "usage");
  return html`${wrong ?? wellHtml(health)}${notice("warn", notesTitle(notes), notes, false)}`;
}

function subtitle({ view: { period, project }, health, compared }: FrameContent): Html {
  const name = health.projects.find(({ projectId }) => projectId === project)?.project ?? project;
  // A month may have more days than the one before.
  const days = compared && dayCount(compared) !== dayCount(period) && ` (${counted(dayCount(compared), "day")})`;
  const scope = name === undefined ? "all projects" : html`project ${nameHtml(name)}`;
  const comparison = compared && html` · compared with ${periodText(compared)}${days}`;
  return html`<p class="subtitle">${periodText(period)} (${counted(dayCount(period), "day")}) · ${scope}${comparison}</p>`;
}

/** The links name the days, so that they lead to the same numbers tomorrow. The script, which copies the URL, shows the button. */
function pageLinks(page: PageName, view: View): Html {
  const fixed = fixedView(view);
  return html`<p class="links"><button type="button" class="copy" hidden data-copy-link="${pageHref(page, fixed, view.pageParameters)}">Copy link</button> <a href="./report.html${viewQuery(fixed, { pageParameters: {} })}">Download report</a></p>`;
}

function toolbar({ page, view, health, controls }: FrameContent): Html {
  const { period } = view;
  const choices = Object.entries(PERIOD_TITLES).map(([name, title]) => {
    const href = pageHref(page, { ...view, period: { ...period, name } }, view.pageParameters);
    return [title, href, name === period.name] as const;
  });
  const kept = Object.entries({ period: period.name, ...view.pageParameters });
  const hidden = kept.filter(([name, value]) => value !== undefined && !controls?.names.includes(name));
  return html`<div class="toolbar">${choiceList("Period", choices)}
<form action="${pageHref(page)}" method="get" autocomplete="off">${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<label>From <input type="date" name="from" value="${period.start}"></label>
<label>to <input type="date" name="to" value="${period.end}"></label>
${projectField(view.project, health)}${controls?.fields}<button>Show</button></form></div>\n`;
}

/** If there are more projects, their names are not listed, and a person types one. */
const PROJECTS_LISTED_MAX = 100;

function projectField(asked: string | undefined, { projects }: HealthState): Html | undefined {
  // The health state lists a project twice if both its usage and its billing are read.
  const names = new Map(projects.map(({ projectId, project }) => [projectId, project]));
  if (names.size < 2 && asked === undefined) return undefined;
  if (names.size > PROJECTS_LISTED_MAX)
    return html`<label>Project <input type="search" name="project" value="${asked}" placeholder="name" spellcheck="false"></label>\n`;
  const isShared = (name: string) => [...names.values()].filter((one) => one === name).length > 1;
  const isAsked = ([id, name]: readonly [string, string]) => asked === id || (asked === name && !isShared(name));
  const listed = [...names].sort(([, a], [, b]) => a.localeCompare(b, "en", { numeric: true }));
  const options = listed.map(([id, name]) =>
    optionHtml(id, isShared(name) ? `${name} (${id})` : name, isAsked([id, name])),
  );
  // If none were selected, the button Show would ask for all projects.
  const other = asked === undefined || listed.some(isAsked) ? undefined : optionHtml(asked, asked, true);
  return html`<label>Project <select name="project"><option value="">all projects</option>${other}${options}</select></label>\n`;
}
