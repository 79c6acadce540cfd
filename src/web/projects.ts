// The projects of the health state, how a URL names one, and finding one by a part of its name or identifier. Pure.

import { counted } from "../show/format.ts";
import { columns, type Html, html, nameHtml, optionHtml, table } from "../show/html.ts";
import type { Section } from "../show/page.ts";

type KnownProject = { readonly id: string; readonly name: string };
/** A project and source of the health state. */
type ProjectLine = { readonly projectId: string; readonly project: string };

/** Each project once, by name: the health state has it for usage and for billing. */
export function knownProjects(lines: readonly ProjectLine[]): readonly KnownProject[] {
  const known = new Map(lines.map(({ projectId: id, project: name }) => [id, { id, name }]));
  return [...known.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1));
}

/** What a URL says for a project: its name, or its identifier if the name is blank or that of several projects. */
export function projectValue({ id, name }: KnownProject, known: readonly KnownProject[]): string {
  return name !== "" && known.every((one) => one.id === id || one.name !== name) ? name : id;
}

/** More projects are not listed: a part of a name is typed, and the page then offers the projects that have it. */
const PROJECTS_LISTED_MAX = 100;

export function projectField(asked: string | undefined, known: readonly KnownProject[]): Html | undefined {
  if (known.length < 2 && asked === undefined) return undefined;
  if (known.length > PROJECTS_LISTED_MAX)
    return html`<label>Project <input type="search" name="project" value="${asked}" placeholder="part of a name" spellcheck="false"></label>
`;
  const options = known.map((one) => {
    const value = projectValue(one, known);
    return optionHtml(
      value,
      value === one.name ? value : `${one.name} (${one.id})`,
      [one.id, value].includes(asked ?? ""),
    );
  });
  // A name that several projects share is no project's own value. Unchosen, the next Show would ask for all projects.
  const isListed = known.some((one) => asked === one.id || asked === projectValue(one, known));
  const other = asked === undefined || isListed ? undefined : optionHtml(asked, asked, true);
  return html`<label>Project <select name="project"><option value="">all projects</option>${other}${options}</select></label>
`;
}

const FOUND_SHOWN_MAX = 20;

/**
 * The projects that may be meant by a text that is neither the name nor the identifier of one: those that contain it, in upper or lower case,
 * the shortest names first. Undefined if there are none.
 */
export function projectsFound(
  text: string,
  known: readonly KnownProject[],
  hrefOf: (project: string) => string,
): Section | undefined {
  const wanted = text.trim().toLowerCase();
  const found = known
    .filter(({ id, name }) => `${name}\n${id}`.toLowerCase().includes(wanted))
    .toSorted((a, b) => a.name.length - b.name.length);
  if (found.length === 0) return undefined;
  const rows = found
    .slice(0, FOUND_SHOWN_MAX)
    .map((one) => [html`<a href="${hrefOf(projectValue(one, known))}">${nameHtml(one.name)}</a>`, nameHtml(one.id)]);
  const leftOut = found.length - rows.length;
  const more =
    leftOut > 0
      ? html`<p class="note">And ${counted(leftOut, "more project")}: enter more of the name to find them.</p>
`
      : undefined;
  const body = html`${table("The best matches first", columns("Project", "Identifier"), rows)}${more}`;
  return { id: "projects", title: `${counted(found.length, "project")} found`, body };
}
