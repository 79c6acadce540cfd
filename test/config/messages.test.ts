// Wrong configurations, each spoiled at one place: the message has one line, names the place and says how to mend it.

import { expect, test } from "vitest";
import { faultsFor, sampleWith } from "./sample-config.ts";
import { SPOILED } from "./spoiled-configs.ts";

test.each(SPOILED)("%s can't be %j: %s", (place, value, says, faultPlace) => {
  const faults = faultsFor(sampleWith(place, value));

  expect(faults).toEqual([expect.stringContaining(says)]);
  expect(faults[0]).toMatch(/^- \S+ \(line \d+\): /);
  expect(faults[0]?.split(" ")[1]).toBe(faultPlace);
});
