// What people call the metrics. Pure.

const NAMES: Readonly<Record<string, string>> = {
  hours: "Hours",
  total_hours: "Total hours",
  agent_hours: "Agent hours",
  requests: "Requests",
  tokens_in: "Tokens in",
  tokens_out: "Tokens out",
  tts_characters: "TTS characters",
};

/** By the name of its column; a metric that the service has added since keeps its own. */
export function metricName(column: string): string {
  return Object.hasOwn(NAMES, column) ? (NAMES[column] ?? column) : column;
}
