// A line on a terminal that says how far long work is.

import type { RunCounts } from "../usage/export.ts";

export type Progress = { readonly show: (counts: RunCounts) => void; readonly clear: () => void };

/** Writes nothing where nobody looks. */
export function progressLine(label: string, terminal: boolean, write: (text: string) => void): Progress {
  if (!terminal) return { show: () => {}, clear: () => {} };
  return {
    show: ({ planned, complete, suspect, failed }) => {
      const done = complete + suspect + failed;
      write(`\r\x1b[K${label}: ${done} of ${planned} slices${failed > 0 ? `, ${failed} failed` : ""}`);
    },
    clear: () => write("\r\x1b[K"),
  };
}
