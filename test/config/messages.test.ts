// Wrong configurations, each with one wrong value: the message has one line, names the path and says how to fix it.

import { expect, test } from "vitest";
import { errorsFor, sampleWith } from "./sample-config.ts";
import { SPOILED } from "./spoiled-configs.ts";

test.each(SPOILED)("%s can't be %j: %s", (place, value, says, errorPath) => {
  const errors = errorsFor(sampleWith(place, value));

  expect(errors).toEqual([expect.stringContaining(says)]);
  expect(errors[0]).toMatch(/^- \S+ \(line \d+\): /);
  expect(errors[0]?.split(" ")[1]).toBe(errorPath);
});
