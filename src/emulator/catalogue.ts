// What the service knows by name: features, models, and the ids of a project's API keys. Pure.

import { uuidFrom } from "./random.ts";

/** The features that can be filtered by. Only Get Fields names the last two. A parameter with any other name narrows nothing. */
export const FEATURES: readonly string[] = [
  "alternatives",
  "callback",
  "callback_method",
  "channels",
  "custom_intent",
  "custom_intent_mode",
  "custom_topic",
  "custom_topic_mode",
  "detect_entities",
  "detect_language",
  "diarize",
  "dictation",
  "encoding",
  "extra",
  "filler_words",
  "intents",
  "keyterm",
  "keywords",
  "language",
  "measurements",
  "multichannel",
  "numerals",
  "paragraphs",
  "profanity_filter",
  "punctuate",
  "redact",
  "replace",
  "sample_rate",
  "search",
  "sentiment",
  "smart_format",
  "summarize",
  "topics",
  "utt_split",
  "utterances",
  "version",
  "aura-2",
  "Numerals.v2",
];

/** The id that stands for a model in the filter of 2026, and in Get Fields. */
export function modelId(name: string): string {
  return uuidFrom("model", name);
}

/**
 * The id of a project's nth API key. The keys made in the console are its first ones, and the made-up usage is that of
 * the first few: so an accessor is the id of an API key.
 */
export function apiKeyId(seed: number, projectId: string, n: number): string {
  return uuidFrom("key", seed, projectId, n);
}
