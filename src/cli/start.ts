import { type App, openDatabase, readConfig } from "../app.ts";
import { requireStaticKeys } from "../jobs/keys-in-use.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { openContact } from "../worker/contact.ts";
import { runWorker } from "../worker/worker.ts";

/** Runs until it is told to stop, which is no failure. */
export async function runStart(app: App): Promise<number> {
  const config = await readConfig(app);
  await requireStaticKeys(app, config);
  if (config.rotations.length > 0) readMasterKeys(app.env);
  const contact = openContact(app.log, () => performance.now());
  const db = await openDatabase(app);
  try {
    await runWorker(app, config, db, contact);
  } catch (error) {
    if (!app.signal.aborted) throw error;
  } finally {
    await db.destroy();
  }
  return 0;
}
