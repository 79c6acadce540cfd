// What the service knows by name: features, models and key ids; and the seeded random numbers that ids and usage follow from. Pure.

/**
 * The features that can be filtered by. The last two are in the answer of Get Fields, but not among the parameters that the service
 * publishes. A parameter with any other name is ignored.
 */
export const FEATURES: readonly string[] = `
  alternatives callback callback_method channels custom_intent custom_intent_mode custom_topic custom_topic_mode
  detect_entities detect_language diarize dictation encoding extra filler_words intents keyterm keywords language
  measurements multichannel numerals paragraphs profanity_filter punctuate redact replace sample_rate search sentiment
  smart_format summarize topics utt_split utterances version aura-2 Numerals.v2
`
  .trim()
  .split(/\s+/);

/** The id that stands for a model in Get Fields, and in filters of the dialect "2026". */
export function modelId(name: string): string {
  return uuidFrom("model", name);
}

/**
 * The id of a project's nth API key made in the console. The accessors of made-up usage are the first of these ids, whether or not
 * such keys exist.
 */
export function apiKeyId(seed: number, projectId: string, n: number): string {
  return uuidFrom("key", seed, projectId, n);
}

// Seeded random numbers and ids: the same seed gives the same ones.

/** Random numbers in [0, 1), always the same sequence for the same parts. */
export function randomFrom(...parts: readonly (string | number)[]): () => number {
  let state = fnvHash(JSON.stringify(parts));
  // mulberry32: little code, and random enough for made-up usage.
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function uuidFrom(...parts: readonly (string | number)[]): string {
  const random = randomFrom(...parts);
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`;
}

export function pick<T>(choices: readonly [T, ...T[]], random: () => number): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}

/** FNV-1a. */
function fnvHash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value;
}
