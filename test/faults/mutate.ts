// Changes the bytes or the structure of an answer at random, in the same way for the same seed. Pure.

import { pick, randomFrom } from "../../src/emulator/usage.ts";
import { readTree, writeTree } from "./json-tree.ts";
import { BYTES } from "./mutate-bytes.ts";
import { STRUCTURAL } from "./mutate-structure.ts";

/** The changed answer of case `n`, and a description of the changes. */
export function mutated(body: string, seed: number, n: number): { readonly body: Buffer; readonly how: string } {
  const random = randomFrom("mutation", seed, n);
  const how: string[] = [];
  let tree = readTree(body);
  let bytes: Buffer = Buffer.from(body);
  for (let change = 0; change < 1 + Math.floor(random() * 2); change++) {
    const isStructural = tree !== undefined && random() < 0.6;
    if (isStructural && tree !== undefined) {
      const [name, structural] = pick(STRUCTURAL, random);
      tree = structural(tree, random);
      bytes = Buffer.from(writeTree(tree));
      how.push(name);
    } else {
      const [name, change] = pick(BYTES, random);
      bytes = change(bytes, random);
      tree = undefined;
      how.push(name);
    }
  }
  return { body: bytes, how: how.join(", then ") };
}
