// Remembers answers, but never failures.

/**
 * Asks once for each key. Callers that come while the answer is on its way wait for it, and later callers get the same answer.
 * All callers that waited share a failure; the next caller asks again.
 */
export function rememberAnswers<T>(): (key: string, ask: () => Promise<T>) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return async (key, ask) => {
    const asked = known.get(key) ?? ask();
    known.set(key, asked);
    try {
      return await asked;
    } catch (error) {
      if (known.get(key) === asked) known.delete(key);
      throw error;
    }
  };
}
