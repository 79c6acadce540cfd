// A program: prints its standard input in the encoding that its argument names, first without and then with the line end that a
// delivered key has, and fails.

import { text } from "node:stream/consumers";
import { ENCODINGS } from "./encodings.ts";

const key = await text(process.stdin);
const encode = ENCODINGS[process.argv[2] ?? ""] ?? ((secret) => secret);
process.stdout.write(`refused ${encode(key.trim())}\nrefused ${encode(key)}`);
process.exitCode = 1;
