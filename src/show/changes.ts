// Why usage or cost rose or fell, in plain words. Pure.

import type { Answer } from "../facts/answer.ts";
import type { Change, ChangePart, ChangeSplit, Effects } from "../facts/changes.ts";
import type { Day, Window } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import { groupCell } from "./answer-chart.ts";
import {
  changeText,
  counted,
  daysText,
  isZero,
  type Measure,
  metricName,
  periodText,
  quantityText,
  signedText,
} from "./format.ts";
import { type Html, html } from "./html.ts";

/** A sentence in pieces, so that a page can set names apart from the text around them. */
export type Sentence = readonly (string | NamedGroup)[];
type NamedGroup = Pick<ChangePart, "group" | "label"> & { readonly grouping: string };

export function changeHtml(change: Change): Html {
  // The page says above which days may still change.
  const [headline, ...more] = changeSentences({ ...change, settlingDays: [] }).map((sentence) =>
    sentence.map((piece) => (typeof piece === "string" ? piece : groupCell(piece.grouping, piece, []))),
  );
  return html`<p>${headline}</p>
<ul>${more.map((sentence) => html`<li>${sentence}</li>`)}</ul>
`;
}

/** Everything worth knowing of one metric, the most important first. */
export function changeSentences(change: Change): readonly Sentence[] {
  const { lacking, settlingDays, splits, currency, projects, projectCount } = change;
  const { projectsLeftOut, projectsLeftOutCount, unpricedModels } = lacking;
  return [
    headline(change),
    ...splits.flatMap((split) => contributors(change, split)),
    ...(["new", "vanished"] as const).flatMap((status) => splits.flatMap((split) => appeared(change, split, status))),
    ...splits
      .filter(({ daysLacking }) => daysLacking > 0)
      .map(({ grouping, daysLacking, daysUnread }) => [
        `By ${groupingNoun(grouping)} it can't be split: ${lackTexts(daysUnread, daysLacking - daysUnread).join(" and ")} by it.`,
      ]),
    // Billed are some projects, and estimated others.
    ...(currency !== null
      ? [[`Projects in it: ${moreText(projects.slice(0, PROJECTS_NAMED_MAX), projectCount)}.`]]
      : []),
    ...(unpricedModels
      ? [[`Usage of ${counted(unpricedModels, "model")} has no price and is not in these amounts.`]]
      : []),
    ...(projectsLeftOutCount > 0
      ? [[`Not included, as not exported like this: ${moreText(projectsLeftOut, projectsLeftOutCount)}.`]]
      : []),
    ...(settlingDays.length > 0
      ? [
          [
            `${counted(settlingDays.length, "day is", "days are")} not final yet and may still change: ${daysText(settlingDays)}.`,
          ],
        ]
      : []),
  ];
}

const PROJECTS_NAMED_MAX = 5;

function moreText(names: readonly string[], count: number): string {
  return `${names.join(", ")}${count > names.length ? ` and ${count - names.length} more` : ""}`;
}

function headline(change: Change): Sentence {
  const { period, before, amount, amountBefore, lacking, effects } = change;
  const title = metricName(change.metric);
  const [is, was] = [periodText(period), periodText(before)];
  const why = whyNotCompared(lacking, before);
  if (change.change === null || amount === null || amountBefore === null) {
    const known = amount === null ? "" : `${title} in ${is}: ${quantityText(amount, change)}. `;
    return [`${known}${why ?? `Nothing is known of ${was}.`}`];
  }
  if (isZero(change.change)) return [`${title} did not change: ${quantityText(amount, change)} in ${is} as in ${was}.`];
  const verb = change.change.startsWith("-") ? "fell" : "rose";
  const percent = changeText(amount, amountBefore);
  const by = /%$/.test(percent) ? ` by ${percent.replace(/^[+-]/, "")}` : "";
  const why2 = effects ? `: ${effectsText(effects, change)}` : "";
  return [
    `${title} ${verb}${by}, from ${quantityText(amountBefore, change)} (${was}) to ${quantityText(amount, change)} (${is})${why2}.`,
  ];
}

function effectsText({ volume, price }: Effects, measure: Measure): string {
  const usage = `${volume.startsWith("-") ? "less" : "more"} usage (${signedText(volume, measure)})`;
  const prices = `${price.startsWith("-") ? "lower" : "higher"} prices (${signedText(price, measure)})`;
  if (isZero(price)) return usage;
  return isZero(volume) ? prices : `${usage} and ${prices}`;
}

/**
 * Why a period has no change; undefined if every day of both was read. The difference between a whole and a partial period would look like a
 * change of usage.
 */
export function whyNotCompared(lacking: Answer["lacking"], before: Window): string | undefined {
  const { projectsEnded, projectsEndedCount } = lacking;
  const reasons = [
    ...lackText("this period", lacking.incompleteDays, lacking.unreadDays),
    ...lackText("the period before", lacking.incompleteDaysBefore, lacking.unreadDaysBefore),
    ...(projectsEndedCount > 0 ? [`no longer exported: ${moreText(projectsEnded, projectsEndedCount)}`] : []),
  ];
  return reasons.length === 0 ? undefined : `Not compared with ${periodText(before)}: ${reasons.join("; ")}.`;
}

function lackText(period: string, incomplete: readonly Day[], unread: readonly Day[]): string[] {
  const named = [unread, incomplete].filter((days) => days.length > 0).map((days) => ` (${daysText(days)})`);
  const reasons = lackTexts(unread.length, incomplete.length).map((text, i) => `${text}${named[i]}`);
  return reasons.length === 0 ? [] : [`in ${period} ${reasons.join(" and ")}`];
}

/** A day that was read may lack an amount: it is not complete, and must not be called unread. */
function lackTexts(unread: number, incomplete: number): readonly string[] {
  return [
    ...(unread > 0 ? [`${counted(unread, "day was", "days were")} not read`] : []),
    ...(incomplete > 0 ? [`${counted(incomplete, "day is", "days are")} not complete`] : []),
  ];
}

const NAMED_MAX = 3;

/** The parts with the largest changes, the first with its share of the whole change. */
function contributors(of: Change, { grouping, parts }: ChangeSplit): readonly Sentence[] {
  const { change } = of;
  const largest = parts.filter((one) => one.part === "group" && !isZero(one.change)).slice(0, NAMED_MAX);
  if (largest.length === 0) return [];
  const named = largest.map(({ group, label, change: ofPart, effects }, i): Sentence => {
    const isShare = i === 0 && change !== null && !isZero(change);
    const why =
      effects && !isZero(effects.price)
        ? ` (usage ${signedText(effects.volume, of)}, prices ${signedText(effects.price, of)})`
        : "";
    return [
      i > 0 ? ", " : "",
      { grouping, group, label },
      ` ${isShare ? "accounts for " : ""}${signedText(ofPart, of)}${isShare ? ` of ${signedText(change, of)}` : ""}${why}`,
    ];
  });
  return [[`By ${groupingNoun(grouping)}, `, ...named.flat(), "."]];
}

function appeared(of: Change, { grouping, parts }: ChangeSplit, status: "new" | "vanished"): readonly Sentence[] {
  const all = parts.filter((part) => part.status === status);
  if (all.length === 0) return [];
  const names = all
    .slice(0, NAMED_MAX)
    .flatMap(
      ({ group, label, change }, i): Sentence => [
        i > 0 ? ", " : "",
        { grouping, group, label },
        ` (${signedText(change, of)})`,
      ],
    );
  const more = all.length > NAMED_MAX ? [` and ${all.length - NAMED_MAX} more`] : [];
  return [[`${status === "new" ? "New" : "Vanished"} by ${groupingNoun(grouping)}: `, ...names, ...more, "."]];
}

/** The name of a part that is no group. */
export function partText({ part, groups }: Pick<ChangePart, "part" | "groups">): string {
  return part === "others" ? counted(groups, "other") : part;
}
