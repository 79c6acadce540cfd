// A program: says what it reads, in the encoding that it is told, and ends badly. With the line end first, as a delivery
// command gets its key, and then without.

import { text } from "node:stream/consumers";
import { ENCODINGS } from "./encodings.ts";

const key = await text(process.stdin);
const encode = ENCODINGS[process.argv[2] ?? ""] ?? ((secret) => secret);
process.stdout.write(`refused ${encode(key.trim())}\nrefused ${encode(key)}`);
process.exitCode = 1;
