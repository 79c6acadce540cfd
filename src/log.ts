// The log: JSON lines on standard error, or lines for a person if that is a terminal.

import { type Logger, pino } from "pino";
import { AppError } from "./errors.ts";
import type { Scrubber } from "./secret.ts";
import { escapeControlCharacters } from "./text.ts";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** Every line goes through the scrubber last, just before it is written. */
export async function openLog(level: string | undefined, terminal: boolean, scrubber: Scrubber): Promise<Logger> {
  if (level !== undefined && !LEVELS.includes(level)) {
    throw new AppError("config", `LOG_LEVEL: expected one of ${LEVELS.join(", ")}; got ${JSON.stringify(level)}`);
  }
  const out = { write: (line: string) => void process.stderr.write(scrubber.scrub(line)) };
  const options = {
    level: level ?? (terminal ? "warn" : "info"),
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  if (!terminal)
    return pino(options, { write: (line: string) => out.write(`${escapeControlCharacters(line.trimEnd())}\n`) });
  const { default: pretty } = await import("pino-pretty");
  const { Writable } = await import("node:stream");
  const destination = new Writable({
    write(chunk, _encoding, done) {
      // Overwrites a progress bar in the current line of the terminal.
      out.write(`\r\x1b[K${chunk}`);
      done();
    },
  });
  const lines = pretty({ destination, sync: true, colorize: true, translateTime: "SYS:HH:MM:ss", singleLine: true });
  return pino(options, { write: (line: string) => void lines.write(escapeLine(line)) });
}

/** Escapes the texts of a line before it is coloured, because colours are control characters too. */
function escapeLine(line: string): string {
  const safe = JSON.parse(line, (_, value: unknown) =>
    typeof value === "string" ? escapeControlCharacters(value) : value,
  );
  return `${JSON.stringify(safe)}\n`;
}
