// The alerts about unusual days: one for each project and filter, however many of its days are unusual. Pure.

import type { Anomaly, JudgedUsage } from "../db/anomalies.ts";
import { counted, metricName, roundedText } from "../show/format.ts";
import { type Alert, type Condition, nameWord } from "./alert.ts";

export function anomalyAlerts(usages: readonly JudgedUsage[]): readonly Alert[] {
  return usages.flatMap((usage) => {
    const open = openAnomalies(usage);
    return open.length > 0 ? [{ name: nameOf(usage), text: openText(usage, open), section: "anomalies" as const }] : [];
  });
}

export function anomalyConditions(usages: readonly JudgedUsage[]): readonly Condition[] {
  return usages.map((usage) => {
    const open = openAnomalies(usage);
    return {
      subject: nameOf(usage),
      isWrong: open.length > 0,
      text: () =>
        open.length > 0
          ? `${openText(usage, open)}.`
          : `The alert about unusual usage of ${usageName(usage)} is over; days are judged through ${usage.through}.`,
    };
  });
}

function nameOf({ project, filter, unfiltered }: JudgedUsage): string {
  return ["anomaly", nameWord(project), ...(unfiltered ? [] : [nameWord(filter)])].join(" ");
}

function usageName({ project, filter, unfiltered }: JudgedUsage): string {
  return unfiltered ? project : `${project} under ${filter}`;
}

/** The newest first. */
export function openAnomalies({ anomalies }: JudgedUsage): readonly Anomaly[] {
  return anomalies.filter(({ isOpen }) => isOpen);
}

function openText(usage: JudgedUsage, [newest, ...others]: readonly Anomaly[]): string {
  if (!newest) return "";
  const more = others.length > 0 ? `; also ${counted(others.length, "day")} before it` : "";
  return `unusual usage of ${usageName(usage)} on ${newest.day}: ${anomalyText(newest)}${more}`;
}

/** "12,345 requests, usually 3,100 to 4,900" */
function anomalyText({ metric, amount, low, high }: Anomaly): string {
  return `${metricName(metric)}: ${roundedText(amount)}, usually ${roundedText(low)} to ${roundedText(high)}`;
}
