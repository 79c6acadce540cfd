// Which project a page is about, and what it shows if its address names none: the projects that may be meant. Pure.

import type { HealthState } from "../../facts/health.ts";
import { InvalidQuestion } from "../../facts/question.ts";
import { counted } from "../../show/format.ts";
import { columns, html, nameHtml, table } from "../../show/html.ts";
import { findProjects, knownProjects, projectValue } from "../projects.ts";
import { type FrameContent, type PageName, pageHref } from "./frame.ts";
import { type View, viewQuery } from "./view.ts";

const FOUND_SHOWN_MAX = 20;

/**
 * Undefined if the page can show what its address asks for. A text that is neither the name nor the identifier of a project is a search.
 * Throws InvalidQuestion if that finds nothing.
 */
export function projectChoice(
  page: PageName,
  view: View,
  { projects }: HealthState,
): Pick<FrameContent, "title" | "sections"> | undefined {
  const { project: text } = view;
  if (text === undefined || projects.some(({ project, projectId }) => text === project || text === projectId))
    return undefined;
  const known = knownProjects(projects);
  const found = findProjects(known, text);
  if (found.length === 0) throw new InvalidQuestion(`project: no series of ${JSON.stringify(text)} is known`);
  const rows = found.slice(0, FOUND_SHOWN_MAX).map((one) => {
    const href = `${pageHref(page)}${viewQuery(view, { project: projectValue(one, known) })}`;
    return [html`<a href="${href}">${nameHtml(one.name)}</a>`, nameHtml(one.id), one.isExported ? "yes" : "no longer"];
  });
  const leftOut = found.length - rows.length;
  const more =
    leftOut > 0
      ? html`<p class="note">And ${counted(leftOut, "more project")}: enter more of the name to find them.</p>
`
      : undefined;
  const body = html`${table("The best matches first", columns("Project", "Identifier", "Exported"), rows)}${more}`;
  const title = `${counted(found.length, "project")} found`;
  return { title: "Which project?", sections: [{ id: "projects", title, body }] };
}
