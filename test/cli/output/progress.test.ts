import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { progressBar } from "../../../src/cli/export.ts";
import { NO_COUNTS, type RunCounts } from "../../../src/usage/counts.ts";

/** A stream that keeps what is written, with or without the marks of a terminal. */
function screen(isTTY: boolean) {
  const pieces: string[] = [];
  const written = new Writable({
    write(piece, _encoding, done) {
      pieces.push(String(piece));
      done();
    },
  });
  return { pieces, stream: Object.assign(written, { isTTY, columns: 100 }) };
}

/** Adds each count a second after the one before it, and returns what is written. */
function draw(counts: readonly Partial<RunCounts>[], isTTY = true): string {
  let ms = 0;
  const { pieces, stream } = screen(isTTY);
  const progress = progressBar("nightly", 12, stream, () => ms);
  for (const added of counts) {
    ms += 1_000;
    progress.add({ ...NO_COUNTS, ...added });
  }
  progress.stop();
  return pieces.join("");
}

test.each<[string, readonly Partial<RunCounts>[], string]>([
  [
    "the progress and the time that is left",
    [{ complete: 2, suspect: 1 }],
    "nightly [======------------------] 3 of 12 slices, 3 s left",
  ],
  ["failures as soon as there are any", [{ complete: 2 }, { failed: 2 }], "4 of 12 slices, 2 failed, 4 s left"],
  ["itself before anything is done", [], "nightly [------------------------] 0 of 12 slices"],
])("on a terminal a bar shows %s", (_, states, shown) => {
  expect(draw(states)).toContain(shown);
});

test("at the end the bar's line is cleared, and no saved cursor position is restored, so that lines logged meanwhile stay", () => {
  const written = draw([{ complete: 12 }]);
  expect(written.endsWith("\x1b[1G\x1b[2K")).toBe(true);
  for (const jump of ["\x1b7", "\x1b8"]) expect(written).not.toContain(jump);
});

test("nothing is written to a stream that is no terminal", () => {
  expect(draw([{ complete: 3 }], false)).toBe("");
});
