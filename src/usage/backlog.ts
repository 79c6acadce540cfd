// Bounds what a process holds of answers that wait for the database.

/** They fill two transactions, and take little memory. */
const ROWS_MAX = 10_000;

export type Backlog = {
  /** Resolves when more may be asked for. */
  readonly room: () => Promise<void>;
  /** So many rows wait until the work is over. */
  readonly hold: <T>(rows: number, work: () => Promise<T>) => Promise<T>;
};

export function openBacklog(): Backlog {
  const held = new Set<Promise<unknown>>();
  let rowsHeld = 0;
  return {
    async room() {
      while (rowsHeld > ROWS_MAX) await Promise.race(held);
    },
    async hold(rows, work) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      held.add(over);
      rowsHeld += rows;
      try {
        return await work();
      } finally {
        held.delete(over);
        rowsHeld -= rows;
        resolve();
      }
    },
  };
}
