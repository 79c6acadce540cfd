import { expect, test } from "vitest";
import { clockWarning } from "../../src/jobs/inspection.ts";

const warning = (databaseAheadSeconds: number, serviceAheadSeconds: number | null) =>
  clockWarning({ databaseAheadSeconds, serviceAheadSeconds });

test.each([
  [31, null, "the database's is 31 s ahead of this machine's;"],
  [-86_400, 0, "the database's is 86400 s behind this machine's, the service's the same as it;"],
  [0, 45, "the database's is the same as this machine's, the service's 45 s ahead of it;"],
  // Each is near this machine's clock, but the two are not near each other.
  [-20, 20, "the database's is 20 s behind this machine's, the service's 20 s ahead of it;"],
])(
  "a warning if the database's clock is %i s and the service's %s s ahead of this machine's",
  (database, service, text) => {
    expect(warning(database, service)).toContain(
      `clocks differ: ${text} schedules and days go by the database's clock`,
    );
  },
);
