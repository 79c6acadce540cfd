// What the numbers of an answer lack, in words. Pure.

import type { Answer } from "../facts/answer.ts";
import { whyNotCompared } from "./changes.ts";
import { counted, daysHtml } from "./format.ts";
import { type Html, html, joinHtml, nameHtml } from "./html.ts";

/** What the amounts leave out beside days, and why they are not compared. */
export function leftOutNotes({ lacking, question: { before }, groups, total }: Answer): readonly Html[] {
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const { unpricedModels, otherCurrencies } = lacking;
  const why =
    before && (groups.length > 0 || total?.amount)
      ? whyNotCompared(lacking, { start: before.from, end: before.to })
      : undefined;
  return [
    ...(unpricedModels === null
      ? [
          html`Models without a price cost nothing here. <code>bi.cost_estimated</code> shows which, with the status <code>unpriced</code>.`,
        ]
      : []),
    ...(unpricedModels
      ? [
          html`Not in the cost: some usage of ${counted(unpricedModels, "model")}, which has no price. <code>bi.cost_estimated</code> shows which, with the status <code>unpriced</code>.`,
        ]
      : []),
    ...(otherCurrencies.length > 0
      ? [html`Not in these amounts: usage that is priced in ${otherCurrencies.join(", ")}.`]
      : []),
    ...(projectsLeftOutCount > 0
      ? [
          html`Not in these figures, as it is not exported like this: ${projectNames(projectsLeftOut, projectsLeftOutCount)}.`,
        ]
      : []),
    ...(projectsEndedCount > 0
      ? [
          html`Only in part in these figures, as no longer exported: ${projectNames(projectsEnded, projectsEndedCount)}.`,
        ]
      : []),
    ...(why === undefined ? [] : [html`${why}`]),
  ];
}

/** It is said above the numbers, because one that is too low looks like any other. */
export function lackingHtml(answer: Answer): Html {
  const { complete, lacking, days } = answer;
  const { incompleteDays, unreadDays } = lacking;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  const notes = [
    ...(incompleteDays.length > 0
      ? [
          html`<b class="flag">Too low on ${daysHtml(incompleteDays)}</b> (hatched): not all of it could be read. Data health says whose, and why.`,
        ]
      : []),
    ...(unreadDays.length > 0
      ? [
          html`Some usage was not read on ${daysHtml(unreadDays)} (dotted): its export began later, or the day is not due yet.`,
        ]
      : []),
    ...leftOutNotes(answer),
  ];
  const mayChange =
    settling.length > 0
      ? html`<p class="note">May still change, as late usage is still read: ${daysHtml(settling)} (lighter).</p>
`
      : undefined;
  if (notes.length === 0) return html`${mayChange}`;
  return html`<div class="notice ${complete ? "none" : "bad"}"><ul>${notes.map((note) => html`<li>${note}</li>`)}</ul></div>
${mayChange}`;
}

export function projectNames(names: readonly string[], count: number): Html {
  const more = count > names.length ? ` and ${counted(count - names.length, "more project")}` : undefined;
  return html`${joinHtml(names.map(nameHtml), ", ")}${more}`;
}
