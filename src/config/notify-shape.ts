// Where notices go. The addresses are secrets: whoever knows one can write to the channel behind it.

import { object } from "./fields.ts";
import { secret } from "./secret-shape.ts";

const Address = secret("address");

export const Notify = object({
  webhook: Address.exactOptional().describe(
    'Where { "text": … } is posted when something goes wrong and when it is well again. Never the address itself.',
  ),
  deadMan: Address.exactOptional().describe(
    "What is called every minute while all is well, so that whoever listens there tells when it stays silent. Never the address itself.",
  ),
});
