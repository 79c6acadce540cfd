// Remembers what was found out, and never that it could not be.

/**
 * Asks once for each key: callers that come while the answer is on its way wait for it, and later ones get it as it was. After
 * a failure, which all who waited share, the next caller asks again.
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
