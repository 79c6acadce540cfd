// Suggests what a misspelt word was meant to be. Pure.

import leven from "leven";

/** Shorter words are part of too many others. */
const PART_LENGTH_MIN = 3;

/** The candidate that the word was most likely meant to be, or undefined. */
export function nearMiss(word: string, candidates: readonly string[]): string | undefined {
  const wanted = plain(word);
  const distanceMax = Math.max(1, Math.floor(wanted.length / 3));
  const [nearest] = candidates
    .map((candidate) => ({ candidate, distance: distance(wanted, plain(candidate)) }))
    .filter((near) => near.distance <= distanceMax)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.candidate ?? containing(wanted, candidates);
}

/** `; did you mean "model"?`, for the end of a message, or an empty text. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const guess = nearMiss(word, candidates);
  return guess === undefined ? "" : `; did you mean ${JSON.stringify(guess)}?`;
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, "");
}

function distance(a: string, b: string): number {
  if (a === b) return 0;
  // Two swapped letters are one mistake, which leven counts as two.
  return sorted(a) === sorted(b) ? 1 : leven(a, b);
}

function sorted(word: string): string {
  return [...word].sort().join("");
}

/**
 * The candidate that contains the word, as "timeoutSeconds" for "timeout", or that the word begins with, as "warn" for "warning".
 * Undefined if several candidates fit.
 */
function containing(wanted: string, candidates: readonly string[]): string | undefined {
  const found = candidates.filter((candidate) => {
    const word = plain(candidate);
    const isPart = wanted.length >= PART_LENGTH_MIN && word.includes(wanted);
    return isPart || (word.length > PART_LENGTH_MIN && wanted.startsWith(word));
  });
  return found.length === 1 ? found[0] : undefined;
}
