// What the numbers of an answer lack, in words. Pure.

import { tooLowNote, unreadNote } from "../../report/breakdown-section.ts";
import { counted, daysHtml, windowText } from "../../report/format.ts";
import { folded, type Html, html, joinHtml, nameHtml } from "../../report/html.ts";
import type { Answer } from "./answer.ts";

const GAP_TEXTS = {
  missing: "missing",
  failed: "failed",
  suspect: "in doubt",
  open: "read before the day was over",
} as const;

/** What the numbers lack. It is said above them, because a number that is too low looks like any other. */
export function lackingHtml({ complete, lacking, days, question }: Answer): Html {
  const { incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore, gaps } = lacking;
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  const before = incompleteDaysBefore.length + unreadDaysBefore.length;
  const notes = [
    ...(incompleteDays.length > 0 ? [html`${tooLowNote(incompleteDays)}${gapsHtml(gaps)}`] : []),
    ...(unreadDays.length > 0 ? [unreadNote(unreadDays) ?? ""] : []),
    ...(projectsLeftOutCount > 0
      ? [html`Not included, as not exported like this: ${projectNames(projectsLeftOut, projectsLeftOutCount)}.`]
      : []),
    ...(projectsEndedCount > 0
      ? [
          html`Included only in part, as no longer exported like this: ${projectNames(projectsEnded, projectsEndedCount)}.${
            question.before === null ? undefined : " So the changes mean little."
          }`,
        ]
      : []),
    ...(question.before !== null && before > 0
      ? [html`The compared period lacks usage on ${counted(before, "day")}, so the changes mean little.`]
      : []),
  ];
  const mayChange =
    settling.length > 0
      ? html`<p class="note">May still change, as it is still read again: ${daysHtml(settling)}.</p>
`
      : undefined;
  if (notes.length === 0) return html`${mayChange}`;
  return html`<div class="notice ${complete ? "none" : "bad"}"><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></div>
${mayChange}`;
}

/** More are folded, so that the numbers stay in sight. */
const GAPS_SHOWN_MAX = 3;

function gapsHtml(gaps: Answer["lacking"]["gaps"]): Html | undefined {
  const items = gaps.map(
    ({ project, status, from, to, days, error }) =>
      html`<li>${nameHtml(project)}: ${GAP_TEXTS[status]} on ${counted(days, "day")} (${windowText({ start: from, end: to })})${
        error === null ? undefined : html`: <bdi>${error}</bdi>`
      }</li>`,
  );
  if (gaps.length === 0) return undefined;
  return gaps.length > GAPS_SHOWN_MAX ? folded("Whose, and why", html`<ul>${items}</ul>`) : html`<ul>${items}</ul>`;
}

function projectNames(names: readonly string[], count: number): Html {
  const more = count > names.length ? ` and ${counted(count - names.length, "more project")}` : undefined;
  return html`${joinHtml(names.map(nameHtml), ", ")}${more}`;
}
