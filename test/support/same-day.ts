// Loaded before each test file. Many tests compare what the program reads of "yesterday" with the day on which their file was loaded, so
// a file does not begin shortly before midnight UTC.

import { setTimeout } from "node:timers/promises";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Longer than nearly every file takes, also on a slow machine. */
const FILE_MS = 5 * 60_000;

const leftMs = DAY_MS - (Date.now() % DAY_MS);
if (leftMs < FILE_MS) await setTimeout(leftMs);
