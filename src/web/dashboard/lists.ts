// Long lists: what a page narrows them to and which part it shows, as its URL says it, and the form and the links to choose that. Pure.

import {
  existingPage,
  type KeyFilter,
  PROJECT_OUTCOMES,
  type ProjectFilter,
  RUN_STATUSES,
  type RunFilter,
} from "../../facts/operations.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import { type Html, html } from "../../show/html.ts";
import { type PageName, pageHref } from "./frame.ts";
import { type View, viewParameters, viewQuery } from "./view.ts";

/** The value of a parameter that only this page has. */
export function chosen({ more = [] }: View, name: string): string | undefined {
  return more.find(([parameter]) => parameter === name)?.[1];
}

/** Throws InvalidQuestion if it is none of them. */
function chosenOf<const Value extends string>(view: View, name: string, values: readonly Value[]): Value | undefined {
  const given = chosen(view, name);
  const value = values.find((one) => one === given);
  if (given !== undefined && value === undefined)
    throw new InvalidQuestion(`${name}: expected one of ${values.join(", ")}`);
  return value;
}

/** Which runs the page Data health shows. Throws InvalidQuestion. */
export function runFilterOf(view: View): RunFilter {
  return { job: chosen(view, "job"), status: chosenOf(view, "outcome", RUN_STATUSES), page: pageNumber(view) };
}

/** Which projects the page of a run shows. Throws InvalidQuestion. */
export function projectFilterOf(view: View): ProjectFilter {
  return {
    outcome: chosenOf(view, "outcome", PROJECT_OUTCOMES),
    project: view.project,
    page: pageNumber(view),
  };
}

/** Which keys the page Data health shows. */
export function keyFilterOf(view: View): KeyFilter {
  return { search: chosen(view, "search") };
}

/** From 1. */
function pageNumber(view: View): number {
  const text = chosen(view, "page") ?? "1";
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidQuestion("page: expected a whole number from 1");
  return Number(text);
}

/** For a list of which the length is known: one that has become shorter shows its last page. */
export function pageLinksOf(page: PageName, view: View, found: number, perPage: number): Html | undefined {
  const now = existingPage(pageNumber(view), found, perPage);
  return pageLinks(page, view, found > now * perPage, now);
}

/** `hasMore`: there is a page after this one. */
export function pageLinks(
  page: PageName,
  view: View,
  hasMore: boolean,
  now: number = pageNumber(view),
): Html | undefined {
  const link = (to: number, title: string) => pageLink(page, view, to, title);
  if (now === 1 && !hasMore) return undefined;
  return html`<p class="links">${now > 1 ? html`${link(now - 1, "Previous page")} · ` : undefined}page ${now}${hasMore ? html` · ${link(now + 1, "Next page")}` : undefined}</p>
`;
}

function pageLink(page: PageName, view: View, to: number, title: string): Html {
  const others = (view.more ?? []).filter(([name]) => name !== "page");
  const more = to === 1 ? others : [...others, ["page", String(to)] as const];
  return html`<a href="${pageHref(page)}${viewQuery(view, { more })}">${title}</a>`;
}

/** In place of a list that is narrowed to nothing, or of a page after its last. */
export function nothingListed(page: PageName, view: View, things: string): Html {
  const now = pageNumber(view);
  if (now > 1)
    return html`<p class="empty">The list ends before page ${now}. ${pageLink(page, view, 1, "Show its first page")}</p>
`;
  const all = `${pageHref(page)}${viewQuery(view, { more: [] })}`;
  return html`<p class="empty">There are no such ${things}. <a href="${all}">Show all ${things}</a></p>
`;
}

/** Fields of which the values narrow the list; what else the URL says is kept. */
export function listForm(page: PageName, view: View, fields: readonly Html[], replaced: Partial<View> = {}): Html {
  const keep = viewParameters(view, { ...replaced, more: [] });
  return html`<div class="toolbar"><form action="${pageHref(page)}" method="get" autocomplete="off">${keep.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields}<button>Show</button></form></div>
`;
}

export function selectField(title: string, name: string, values: readonly string[], now: string | undefined): Html {
  const option = (value: string, text: string) =>
    html`<option value="${value}"${value === (now ?? "") ? html` selected` : undefined}>${text}</option>`;
  return html`<label>${title} <select name="${name}">${option("", "all")}${values.map((value) => option(value, value))}</select></label>
`;
}

export function textField(title: string, name: string, now: string | undefined): Html {
  return html`<label>${title} <input name="${name}" value="${now}"></label>
`;
}
