// Where notices go. The addresses are secrets: whoever knows one can write to the channel behind it.

import { z } from "zod";
import { object } from "./fields.ts";
import { references } from "./secret-shape.ts";

const { Env, File } = references("address");

const Address = z.union([Env, File], {
  error:
    '{ "env": "NAME" } or { "file": "PATH" } (an address itself, which is a secret, never stands in this file: ' +
    'put it in an environment variable and use { "env": "NAME" })',
});

export const Notify = object({
  webhook: Address.exactOptional().describe(
    'Where { "text": … } is posted when something goes wrong and when it is well again. Never the address itself.',
  ),
  deadMan: Address.exactOptional().describe(
    "What is called every minute while all is well, so that whoever listens there tells when it stays silent. Never the address itself.",
  ),
});
