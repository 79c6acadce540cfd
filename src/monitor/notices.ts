// Decides what people are told: of each thing that can go wrong once when it does, and once when it is well again. Pure.

import { gapsText, jobText, type NoticeState, sendable } from "./notice-texts.ts";
import { rotationConcerns } from "./rotation-concerns.ts";
import type { GapsOfJob, JobOutcome, RotationState, Situation } from "./situation.ts";

export type Notice = {
  /** What it is about: the same in every replica. */
  readonly subject: string;
  readonly state: NoticeState;
  readonly text: string;
};

/**
 * What is to be said now, where `said` was said last; what nothing was said of yet is "well".
 *
 * A job that fails for the fifth night says nothing new, and a gap that grows is no news until it was closed. Each concern
 * about a rotation stands alone: a key that waits to be removed, as it may for weeks, must not keep quiet about one that
 * is refused.
 *
 * Nothing is said about the gaps of a job that fails: the notice of its failure says what is not there. What is left when it
 * works again is said then.
 */
export function noticesOf(
  { jobs, gaps, rotations }: Situation,
  said: ReadonlyMap<string, NoticeState>,
  scrub: (text: string) => string,
): Notice[] {
  const failing = new Set(jobs.flatMap(({ kind, name, last }) => (last?.status === "failed" ? `${kind} ${name}` : [])));
  const all = [
    ...jobs.flatMap(jobNotice),
    ...gaps.filter(({ job }) => !failing.has(`export ${job}`)).flatMap(gapsNotice),
    ...rotations.flatMap(rotationNotices),
  ];
  return all
    .filter(({ subject, state }) => state !== (said.get(subject) ?? "well"))
    .map((notice) => ({ ...notice, text: sendable(notice.text, scrub) }));
}

function jobNotice(job: JobOutcome): Notice[] {
  if (!job.last) return [];
  const state = job.last.status === "failed" ? "wrong" : "well";
  return [{ subject: `${job.kind} ${job.name}`, state, text: jobText(job, job.last) }];
}

function gapsNotice({ job, slices }: GapsOfJob): Notice[] {
  if (!slices) return [];
  return [{ subject: `gaps ${job}`, state: slices.length > 0 ? "wrong" : "well", text: gapsText(job, slices) }];
}

function rotationNotices(rotation: RotationState): Notice[] {
  return rotationConcerns(rotation).map(({ concern, state, text }) => ({
    subject: `key ${concern} ${rotation.rotation}`,
    state,
    text: `Rotation ${rotation.rotation}: ${text}`,
  }));
}
