// What notices say, in a sentence or two for a person who may not be at the machine. Pure.

import type { Day } from "../usage/day.ts";
import type { GapSlice, JobOutcome, Outcome } from "./situation.ts";

export type NoticeState = "wrong" | "well";

const TEXT_LENGTH_MAX = 500;
const SERIES_SHOWN_MAX = 3;

export function jobText({ kind, name }: JobOutcome, last: Outcome): string {
  const job = `${kind === "export" ? "Export" : "Rotation"} ${name}`;
  const run = `run of ${minute(last.startedAt)} (${last.trigger})`;
  if (last.status === "ok") return `${job} works again: its ${run} went well.`;
  const slices = sliceText(last);
  const reason = last.error === null ? "" : ` The first error: ${last.error}`;
  return `${job} failed in its ${run}${slices}.${reason}`;
}

function sliceText({ planned, failed, suspect }: Outcome): string {
  const parts = [
    ...(failed > 0 ? [`${failed} of ${counted(planned, "slice")} not read`] : []),
    ...(suspect > 0 ? [`${suspect} of ${counted(planned, "slice")} empty where there were numbers, which stay`] : []),
  ];
  return parts.length > 0 ? `: ${parts.join(", ")}` : "";
}

export function gapsText(job: string, slices: readonly GapSlice[]): string {
  if (slices.length === 0) return `Export ${job} has no gaps any more.`;
  const days = [...new Set(slices.map(({ day }) => day))].sort();
  const missing = slices.filter(({ status }) => status === "missing").length;
  const series = [...new Set(slices.map((slice) => slice.series))];
  const others = series.length - SERIES_SHOWN_MAX;
  return [
    `Export ${job} has gaps: ${counted(slices.length, "slice")} of ${daysText(days)}`,
    `(${missing} missing, ${slices.length - missing} failed), of ${series.slice(0, SERIES_SHOWN_MAX).join(", ")}`,
    ...(others > 0 ? [`and ${others} more series`] : []),
  ]
    .join(" ")
    .concat(".");
}

/** `days` are in order. */
function daysText(days: readonly Day[]): string {
  const [oldest, newest] = [days[0], days.at(-1)];
  return oldest === newest ? `${oldest}` : `${days.length} days from ${oldest} to ${newest}`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function minute(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Appended to every text: which installation sent it, because several may write to one channel, and where to look. */
export function signature(publicUrl: string | undefined, host: string): string {
  if (publicUrl === undefined) return ` — usage-export on ${host}`;
  return ` — usage-export at ${new URL(publicUrl).host}, ${publicUrl}`;
}

/**
 * The text as it is sent: on one line, without secrets, not too long, and with the three characters escaped that Slack takes
 * for its own: an error may quote anything, and `<!channel>` would ring everybody's phone. Secrets go first, while they are whole.
 */
export function sendable(text: string, scrub: (text: string) => string): string {
  const line = [...scrub(text).replaceAll(/\s+/g, " ")];
  const short = line.length > TEXT_LENGTH_MAX ? `${line.slice(0, TEXT_LENGTH_MAX - 1).join("")}…` : line.join("");
  // In some chats @channel in an error would ring everybody: what can't be seen behind the sign keeps it a sign.
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
