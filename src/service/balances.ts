// Reads the balances of a project: GET /v1/projects/{id}/balances.

import { z } from "zod";
import type { Secret } from "../secret.ts";
import { decimalText, ExactNumber } from "../usage/json-value.ts";
import { parseAnswer } from "./answer.ts";
import type { Service } from "./service.ts";

const Amount = z.union([z.number(), z.instanceof(ExactNumber)]).transform((value, context) => {
  const text = decimalText(value);
  if (text !== undefined) return text;
  context.addIssue("not a number that can be kept with all its digits");
  return z.NEVER;
});

const Balance = z
  .object({
    balance_id: z.string().min(1),
    amount: Amount,
    units: z.string().nullish(),
    purchase_order_id: z.string().nullish(),
  })
  .transform(({ balance_id, amount, units, purchase_order_id }) => ({
    balanceId: balance_id,
    amount,
    units: units ?? null,
    purchaseOrderId: purchase_order_id ?? null,
  }));

const BalancesAnswer = z.object({
  balances: z
    .array(Balance)
    .refine((all) => new Set(all.map(({ balanceId }) => balanceId)).size === all.length, "a balance is in it twice"),
});

/** A refusal (403), and a service that does not offer balances (404), are errors as any other. */
export async function fetchBalances(
  service: Service,
  projectId: string,
  key: Secret,
  signal: AbortSignal,
): Promise<readonly z.output<typeof Balance>[]> {
  const path = ["v1", "projects", projectId, "balances"];
  const answer = await service.call(
    { operation: "balances", method: "GET", path, retry: true, scopes: ["billing:read"] },
    key,
    signal,
  );
  return parseAnswer(BalancesAnswer, answer, "the balances").balances;
}
