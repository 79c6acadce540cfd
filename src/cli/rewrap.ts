// The command `keys rewrap`.

import type { App } from "../app.ts";
import { withDatabase } from "../database.ts";
import { replaceSealed, sealedWithOthers } from "../db/keys/keystore.ts";
import { raiseSequences } from "../db/usage/fetch-numbers.ts";
import { openMasterKeys } from "../jobs/key-ring.ts";
import { openSealedKey, sealKey } from "../keys/seal.ts";

/** Seals every key with the current master key. Safe to repeat and to interrupt: each key opens with one or the other. */
export async function runRewrap(app: App, { json }: { readonly json?: boolean }): Promise<number> {
  const rewrapped = await withDatabase(app, async (db) => {
    await raiseSequences(db, app.log);
    const masterKeys = await openMasterKeys(app, db);
    const others = await sealedWithOthers(db, masterKeys.current.id);
    for (const key of others) {
      const secret = await openSealedKey(key, masterKeys, app.scrubber);
      const sealed = await sealKey(secret, key.apiKeyId, masterKeys);
      await replaceSealed(db, key, { sealed, masterKey: masterKeys.current.id, actor: app.actor });
    }
    return others.length;
  });
  app.write(json ? `${JSON.stringify({ rewrapped })}\n` : `${rewrapped} keys sealed with the current master key\n`);
  return 0;
}
