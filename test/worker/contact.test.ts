import { pino } from "pino";
import { expect, test } from "vitest";
import { openContact } from "../../src/worker/contact.ts";

const failed = (code: string, message: string) => Object.assign(new Error(message), { code });

test.each([
  ["a deadlock", failed("40P01", "deadlock detected")],
  ["a lock that was waited for too long", failed("55P03", "canceling statement due to lock timeout")],
])("after %s the worker is as ready as before, and nobody is told that its database is away", (_name, error) => {
  const lines: string[] = [];
  const contact = openContact(pino({}, { write: (line) => lines.push(line) }), () => 0);
  contact.note();
  contact.note(error);
  expect(contact.reasons()).toEqual([]);
  expect(lines).toMatchObject([expect.stringContaining(`"reason":"${error.message}"`)]);
  expect(lines.join()).not.toContain("not reached");
});

test("a database that ends the connection is not reached, until it answers", () => {
  const lines: string[] = [];
  const contact = openContact(pino({}, { write: (line) => lines.push(line) }), () => 0);
  contact.note();
  contact.note(failed("57P01", "terminating connection due to administrator command"));
  expect(contact.reasons()).toEqual(["terminating connection due to administrator command"]);
  contact.note();
  expect(contact.reasons()).toEqual([]);
  expect(lines.join()).toMatch(/database not reached.*database reached again/s);
});
