import { expect, test } from "vitest";
import { fetchBalances } from "../../src/service/projects.ts";
import { type Script, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

async function read(status: number, body: string) {
  const script: Script = (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  };
  await using server = await scriptedServer(script);
  await using service = openTestService(server.origin);
  return await fetchBalances(service, "p1", KEY, limit());
}

const balanceOf = (amount: string, rest = "") => `{"balances":[{"balance_id":"b","amount":${amount}${rest}}]}`;

test.each([
  ["0.30000000000000004", "0.30000000000000004"],
  ["12345678901234.56789012345678", "12345678901234.56789012345678"],
  ["-0.05", "-0.05"],
  ["1.50", "1.5"],
  ["2.5e3", "2500"],
  ["0", "0"],
])("the amount %s is read as %s, with every digit", async (sent, amount) => {
  const balance = { balanceId: "b", amount, units: "usd", purchaseOrderId: "po" };
  expect(await read(200, balanceOf(sent, ',"units":"usd","purchase_order_id":"po"'))).toEqual([balance]);
});

test("a balance without unit and purchase order has null for both, and unknown members are ignored", async () => {
  const balance = { balanceId: "b", amount: "1", units: null, purchaseOrderId: null };
  expect(await read(200, balanceOf("1", ',"units":null,"colour":"red"'))).toEqual([balance]);
  expect(await read(200, '{"balances":[]}')).toEqual([]);
});

test.each([
  balanceOf('"1"'),
  balanceOf("null"),
  balanceOf("1e999"),
  '{"balances":[{"balance_id":"","amount":1}]}',
  '{"balances":[{"balance_id":"b","amount":1},{"balance_id":"b","amount":2}]}',
  "{}",
])("the answer %s can't be read", async (body) => {
  await expect(read(200, body)).rejects.toMatchObject({ code: "bad_answer" });
});

test("the error of a refusal names the scope that the key lacks", async () => {
  await expect(read(403, "{}")).rejects.toThrow("the scope billing:read");
});
