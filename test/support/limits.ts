// How long tests wait. The limits only end what hangs: they hold on a machine with twenty other programs on it, and cost nothing
// where the condition comes sooner.

/** For a condition that a test waits for. */
export const WAIT_MS_MAX = 120_000;

/** For a program that a test starts. */
export const PROGRAM_MS_MAX = 240_000;

/** Vitest's settings; each `expect.poll` waits for its condition by them. */
export const LIMITS = {
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: WAIT_MS_MAX, interval: 50 } },
};

/** How much longer than promised something may take on a busy machine, where a test says that it ends in time. */
export const BUSY_MS = 20_000;
