// Reads the addresses of notices from where the configuration says they are. They are secrets, as keys are.

import type { Secret } from "../secret.ts";
import { isLoopback } from "./base-url.ts";
import type { NotifyConfig, SecretReference } from "./config.ts";
import { type Environment, readProblem, readSecret } from "./read-secret.ts";
import { quotesFault, tooLongFault } from "./secret-fault.ts";

/** Throws an AppError that says where the address was looked for and how to mend it. */
export async function readAddress(reference: SecretReference, env: Environment): Promise<Secret> {
  return readSecret(reference, env, { file: "address file", what: "the address", faultOf: addressFault });
}

/** What is wrong with the addresses, each with its place. */
export async function addressProblems({ webhook, deadMan }: NotifyConfig, env: Environment): Promise<string[]> {
  const problems = await Promise.all(
    Object.entries({ webhook, deadMan }).map(([name, reference]) =>
      reference ? readProblem(["notify", name], readAddress(reference, env)) : [],
    ),
  );
  return problems.flat();
}

/** What can't be called. */
function addressFault(text: string): string | undefined {
  const fault = quotesFault(text, "address") ?? tooLongFault(text);
  if (fault !== undefined) return fault;
  if (!/^https?:\/\/[^\s\\]+$/i.test(text) || !URL.canParse(text)) {
    return "holds something else: expected an https address alone, on one line";
  }
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== "" || password !== "") {
    return "holds a name or password before an @, which is not sent: expected an address that needs none";
  }
  if (protocol === "http:" && !isLoopback(hostname)) {
    return "begins with http://: expected https, since the address is a secret (http is for this machine only)";
  }
  return undefined;
}
