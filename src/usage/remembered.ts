// Keeps the results of a function that would compute the same ones again and again. Pure.

const RESULTS_MAX = 20_000;
/** The results for longer texts are not kept, so that all of them together take a few megabytes at most. */
const LENGTH_MAX = 200;

/** The function's result must depend on the text alone, and must not be changed by whoever gets it. */
export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>();
  return (text) => {
    const kept = results.get(text);
    if (kept !== undefined) return kept;
    const result = compute(text);
    if (text.length > LENGTH_MAX) return result;
    if (results.size >= RESULTS_MAX) results.clear();
    results.set(text, result);
    return result;
  };
}
