import { expect, onTestFinished, test } from "vitest";
import { openLog } from "../src/app.ts";
import { Scrubber, Secret } from "../src/secret.ts";

const SECRET = "open-sesame-41";

/** From now on, what is written to standard error goes into the returned array instead. */
function noteLines(): readonly string[] {
  const { write } = process.stderr;
  onTestFinished(() => {
    process.stderr.write = write;
  });
  const lines: string[] = [];
  process.stderr.write = (text: string | Uint8Array) => lines.push(String(text)) > 0;
  return lines;
}

test.each([false, true])("a secret in a log line is hidden (terminal: %s)", async (terminal) => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(SECRET));
  const lines = noteLines();
  const log = await openLog("info", terminal, scrubber);
  log.error({ err: new Error(`no user ${SECRET}`), url: `http://${SECRET}@host` }, `refused: ${SECRET}`);
  expect(lines.join("")).toContain("refused: [secret]");
  expect(lines.join("")).not.toContain(SECRET);
});

test.each([false, true])("control characters in a log line are escaped (terminal: %s)", async (terminal) => {
  const lines = noteLines();
  const log = await openLog("info", terminal, new Scrubber());
  const evil = "a\u001b]0;owned\u0007\u009b2J\u202eb\rc";
  log.error({ reason: evil, list: [evil], err: new Error(evil) }, `said: ${evil}`);
  const colours = new RegExp(`${String.fromCharCode(27)}\\[\\d*m|\\r${String.fromCharCode(27)}\\[K`, "g");
  const text = lines.join("").replaceAll(colours, "");
  expect(text).toContain("owned");
  expect(text).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
});
