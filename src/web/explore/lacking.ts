// What the numbers of an answer lack, in words, and what to do if there are none. Pure.

import type { Answer } from "../../facts/answer.ts";
import { isCost } from "../../facts/question.ts";
import { projectNames, tooLowNote, unreadNote } from "../../show/answer-chart.ts";
import { whyNotCompared } from "../../show/changes.ts";
import { counted, daysHtml, metricName, windowText } from "../../show/format.ts";
import { folded, type Html, html, joinHtml, nameHtml } from "../../show/html.ts";
import { groupingNoun } from "../../usage/dimensions.ts";
import { METRICS } from "../../usage/metrics.ts";
import { EVERY_GROUP, type Link } from "./choices.ts";

const GAP_TEXTS = {
  missing: "missing",
  failed: "failed",
  suspect: "in doubt",
  open: "read before the day was over",
  amount_unknown: "a charge without an amount",
} as const;

/** What the numbers lack. It is said above them, because a number that is too low looks like any other. */
export function lackingHtml({ complete, lacking, days, question }: Answer): Html {
  const { incompleteDays, unreadDays, gaps } = lacking;
  const { projectsLeftOut, projectsLeftOutCount, projectsEnded, projectsEndedCount } = lacking;
  const settling = days.filter(({ state }) => state === "settling").map(({ day }) => day);
  const { before } = question;
  const why = before ? whyNotCompared(lacking, { start: before.from, end: before.to }) : undefined;
  const notes = [
    ...(incompleteDays.length > 0 ? [html`${tooLowNote(incompleteDays)}${gapsHtml(gaps)}`] : []),
    ...(unreadDays.length > 0 ? [unreadNote(unreadDays) ?? ""] : []),
    ...(lacking.unpricedModels === null
      ? [
          html`Models without a price cost nothing here. There is so much usage that they were not counted: <code>bi.cost_estimated</code> has them with the status <code>unpriced</code>.`,
        ]
      : []),
    ...(lacking.unpricedModels
      ? [
          html`Without a price, so not in the cost: usage of ${counted(lacking.unpricedModels, "model")}. <code>bi.cost_estimated</code> has it with the status <code>unpriced</code>.`,
        ]
      : []),
    ...(lacking.otherCurrencies.length > 0
      ? [
          html`Not in these amounts, as currencies are never added up: usage with a price in ${lacking.otherCurrencies.join(", ")}. Choose the currency above.`,
        ]
      : []),
    ...(projectsLeftOutCount > 0
      ? [html`Not included, as not exported like this: ${projectNames(projectsLeftOut, projectsLeftOutCount)}.`]
      : []),
    ...(projectsEndedCount > 0
      ? [
          html`Included only in part, as no longer exported like this: ${projectNames(projectsEnded, projectsEndedCount)}.`,
        ]
      : []),
    ...(why === undefined ? [] : [why]),
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

/** Why there are no numbers, and what to do. */
export function emptyHtml(answer: Answer, link: Link): Html | undefined {
  const { projectCount, groups, question } = answer;
  if (question.metric === "estimated_cost" && question.currency === null)
    return html`<p class="empty">No prices are configured. Add <code>prices</code> to the configuration; the cost of all stored usage is known then.</p>
`;
  if (projectCount === 0) return nothingExported(answer, link);
  return groups.length > 0 ? undefined : nothingUsed(answer, link);
}

function nothingExported({ available, question }: Answer, link: Link): Html {
  const { metric, grouping, filter } = question;
  const others = available.groupings.filter((one) => one !== grouping);
  const setting =
    metric === "billed_cost"
      ? html`Add an export with <code>"source": "billing"</code> to the configuration`
      : html`Add the grouping <code>${grouping}</code> to <code>exports[].groupings</code> of the configuration`;
  const next =
    others.length > 0
      ? html`Known are: ${joinHtml(
          others.map(
            (one) =>
              html`<a href="${link({ ...EVERY_GROUP, grouping: one })}">${one === "none" ? "in total" : `by ${groupingNoun(one)}`}</a>`,
          ),
          ", ",
        )}.`
      : html`${setting}, and run <code>usage-export backfill</code> for the days before.`;
  const what = isCost(metric) ? metricName(metric) : "Usage";
  const by = grouping === "none" ? "" : ` by ${groupingNoun(grouping)}`;
  const under =
    filter === null
      ? undefined
      : html` under the filter ${nameHtml(filter)} (<a href="${link({ filter: undefined })}">show all usage</a>)`;
  return html`<p class="empty">${what}${by}${under} is not exported. ${next}</p>
`;
}

function nothingUsed({ question: { metric }, days }: Answer, link: Link): Html {
  if (days.every(({ state }) => state === "unread"))
    return html`<p class="empty">None of these days was read. Choose other days, or run <code>usage-export backfill</code> for them.</p>
`;
  const others = METRICS.filter((one) => one !== metric).map(
    (one) => html`<a href="${link({ metric: one })}">${metricName(one)}</a>`,
  );
  return html`<p class="empty">Nothing in this metric: the service sent none, or 0. Others are ${joinHtml(others, ", ")}.</p>
`;
}
