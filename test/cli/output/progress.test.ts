import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { type ProgressCount, progressBar, progressCount } from "../../../src/cli/export.ts";
import { NO_COUNTS } from "../../../src/usage/export.ts";

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

/** Shows each state a second after the one before it, and returns what is written. */
function draw(states: readonly ProgressCount[], isTTY = true): string {
  let ms = 0;
  const { pieces, stream } = screen(isTTY);
  const progress = progressBar("nightly", 12, stream, () => ms);
  for (const state of states) {
    ms += 1_000;
    progress.show(state);
  }
  progress.stop();
  return pieces.join("");
}

test.each<[string, readonly ProgressCount[], string]>([
  [
    "the progress, the rate and the time that is left",
    [{ done: 3, failed: 0 }],
    "nightly [======------------------] 3 of 12 slices, 3 a second, 3 s left",
  ],
  ["failures as soon as there are any", [{ done: 6, failed: 2 }], "6 of 12 slices, 2 failed, 6 a second, 1 s left"],
  ["itself before anything is done", [], "nightly [------------------------] 0 of 12 slices"],
])("on a terminal a bar shows %s", (_, states, shown) => {
  expect(draw(states)).toContain(shown);
});

test("at the end the bar's line is cleared, and no saved cursor position is restored, so that lines logged meanwhile stay", () => {
  const written = draw([{ done: 12, failed: 0 }]);
  expect(written.endsWith("\x1b[1G\x1b[2K")).toBe(true);
  for (const jump of ["\x1b7", "\x1b8"]) expect(written).not.toContain(jump);
});

test("nothing is written to a stream that is no terminal", () => {
  expect(draw([{ done: 3, failed: 0 }], false)).toBe("");
});

test.each<[number, number, string]>([
  [59, 60, "59 s left"],
  [60, 61, "1 min left"],
  [3_569, 3_570, "59 min left"],
  [3_600, 3_601, "1 h 0 min left"],
  [9_000, 9_001, "2 h 30 min left"],
])("%i seconds left, for %i slices at one a second, are shown as %s", (_, planned, text) => {
  let ms = 0;
  const { pieces, stream } = screen(true);
  const progress = progressBar("nightly", planned, stream, () => ms);
  ms = 1_000;
  progress.show({ done: 1, failed: 0 });
  progress.stop();
  expect(pieces.join("")).toContain(text);
});

test("the counts of a run are added to those of the runs before it", () => {
  const counts = { ...NO_COUNTS, planned: 12, complete: 4, suspect: 1, failed: 2 };
  expect(progressCount(counts)).toEqual({ done: 7, failed: 2 });
  expect(progressCount(counts, { done: 10, failed: 1 })).toEqual({ done: 17, failed: 3 });
});
