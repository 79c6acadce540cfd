import { expect, onTestFinished, test } from "vitest";
import { openLog } from "../src/log.ts";
import { Scrubber, Secret } from "../src/secret.ts";

const SECRET = "open-sesame-41";

/** The lines that are written to standard error from now on. */
function noteLines(): readonly string[] {
  const { write } = process.stderr;
  onTestFinished(() => {
    process.stderr.write = write;
  });
  const lines: string[] = [];
  process.stderr.write = (text: string | Uint8Array) => lines.push(String(text)) > 0;
  return lines;
}

test.each([false, true])("a secret that gets into a line is hidden there, on a terminal too (%s)", async (terminal) => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(SECRET));
  const lines = noteLines();
  const log = await openLog("info", terminal, scrubber);
  log.error({ err: new Error(`no user ${SECRET}`), url: `http://${SECRET}@host` }, `refused: ${SECRET}`);
  expect(lines.join("")).toContain("refused: [secret]");
  expect(lines.join("")).not.toContain(SECRET);
});
