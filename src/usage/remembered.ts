// Keeps the results of a function that would compute the same ones again and again. Pure.

const RESULTS_MAX = 20_000;
/** The results for longer texts are not kept. */
const LENGTH_MAX = 200;
/** Of all texts together. Results may be many times as long as their texts, and so take tens of megabytes at most. */
const LENGTHS_MAX = 500_000;

/** The function's result must depend on the text alone, and must not be changed by whoever gets it. */
export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  let lengths = 0;
  return (text) => {
    const kept = results.get(text);
    if (kept !== undefined) return kept;
    const result = compute(text);
    if (text.length > LENGTH_MAX) return result;
    if (results.size >= RESULTS_MAX || lengths + text.length > LENGTHS_MAX) {
      results.clear();
      lengths = 0;
    }
    lengths += text.length;
    results.set(text, result);
    return result;
  };
}
