// The sample configuration with one mistake: the message has one line, names the place and says how to fix it.

import { expect, test } from "vitest";
import { MISTAKES } from "./mistakes.ts";
import { errorsFor, sampleWith } from "./sample-config.ts";

test.each(MISTAKES)("%s can't be %j: %s", (changed, value, says, named) => {
  const errors = errorsFor(sampleWith(changed, value));

  expect(errors).toEqual([expect.stringContaining(says)]);
  expect(errors[0]).toMatch(/^- \S+ \(line \d+\): /);
  expect(errors[0]?.split(" ")[1]).toBe(named);
});
