// How long tests wait. The limits only end what hangs. They are long enough for a machine that runs thirty other programs, and a test
// whose condition is met sooner does not wait for them.

/** How long a test waits for a condition. */
export const WAIT_MS_MAX = 240_000;

/** How long a program that a test starts may run. */
export const PROGRAM_MS_MAX = 480_000;

/** Settings of Vitest, including how long `expect.poll` waits. */
export const LIMITS = {
  testTimeout: 900_000,
  hookTimeout: 900_000,
  expect: { poll: { timeout: WAIT_MS_MAX, interval: 50 } },
};

/** How much longer than its limit something may take in a test of that limit, because the machine may be busy. */
export const BUSY_MS = 20_000;
