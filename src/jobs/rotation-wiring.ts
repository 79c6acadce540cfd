// Wires the steps of a rotation to the service, the ledger and the sinks.

import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createKey } from "../api/create-key.ts";
import { deleteKey, fetchToken, listKeys } from "../api/keys.ts";
import type { Service } from "../api/service.ts";
import type { App } from "../app.ts";
import { type Database, databaseNow } from "../db/database.ts";
import { writeLedger } from "../db/key-changes.ts";
import { readLedger } from "../db/key-ledger.ts";
import { sealedKey } from "../db/keystore.ts";
import { type Lease, renewLease } from "../db/lease.ts";
import { AppError, errorText } from "../errors.ts";
import { deliverKey, staleFiles, testSink } from "../keys/deliver.ts";
import type { LedgerChange, LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { RotationDeps, SeenInUse } from "../keys/rotation-deps.ts";
import { makesSelfHosted } from "../keys/scopes.ts";
import { type MasterKeys, openSealedKey, sealKey } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";
import { dayOf } from "../usage/day.ts";
import type { KeyRing } from "./keys-in-use.ts";
import { seenInUse } from "./keys-seen.ts";
import { refusalOf, tryKey } from "./try-key.ts";

export type RotationContext = {
  readonly app: App;
  readonly db: Database;
  readonly service: Service;
  readonly keys: KeyRing;
  readonly masterKeys: MasterKeys;
};

/** How long a key that was made is held while the database does not take it: after that it is lost. */
const STORE_MS_MAX = 60_000;
const STORE_WAIT_MS = 1_000;
const DAY_SECONDS = 24 * 60 * 60;

export function rotationDeps(context: RotationContext, job: RotationJob, lease: Lease): RotationDeps {
  const { app, db, service, keys } = context;
  const { project } = job;
  const log = app.log.child({ rotation: job.name });
  /** By intent: usage of a key that is released and deleted in one run is looked up once. */
  const seen = new Map<string, SeenInUse>();
  return {
    log,
    readLedger: () => readLedger(db, job),
    writeLedger: async (change, reason) => {
      await write(context, job, lease, change, app.scrubber.scrub(reason));
      const intentId = "intentId" in change ? change.intentId : undefined;
      log.info({ change: change.kind, intentId, reason }, "key ledger changed");
    },
    newIntentId: () => `ue-${randomBytes(6).toString("hex")}`,
    confirmLease: () => renewLease(db, lease),
    testSink,
    deliver: (sink, key, apiKeyId) => deliverKey(sink, key, apiKeyId, (text) => app.scrubber.scrub(text)),
    inspect: async (key, signal) => {
      const { key: secret } = await openKey(context, key.intentId);
      const tried = { key: secret, granted: key.scopesGranted, today: dayOf(await databaseNow(db)) };
      return {
        intentId: key.intentId,
        refusal: await refusalOf(service, job, tried, log, signal),
        stale: await staleFiles(job.deliver, key, secret),
      };
    },
    findCaller: (signal) =>
      keys.useToRotate(job, async (key) => {
        await fetchToken(service, key, signal);
        return key;
      }),
    create: (comment, caller, signal) => create(context, job, comment, caller, signal),
    openKey: (intentId) => openKey(context, intentId),
    verify: async (key, apiKeyId, granted, signal) => {
      const today = dayOf(await databaseNow(db));
      await tryKey(service, job, { key, apiKeyId, granted, today }, signal);
    },
    list: (signal) => keys.useToRotate(job, (key) => listKeys(service, project.id, key, signal)),
    callerIds: async (signal) => {
      const fetch = (key: Secret) => fetchToken(service, key, signal);
      const tokens = [await keys.useToRotate(job, fetch), await keys.use(project, fetch)];
      return tokens.flatMap((token) => token?.apiKeyId ?? []);
    },
    remove: (apiKeyId, signal) => keys.useToRotate(job, (key) => deleteKey(service, project.id, apiKeyId, key, signal)),
    seenInUse: async (key, signal) => {
      const known = seen.get(key.intentId) ?? (await look(key, signal));
      seen.set(key.intentId, known);
      return known;
    },
    clocks: async (signal) => {
      // If there was no answer yet, the service's time is not known, so one harmless call asks for it.
      if (!service.serviceTime()) await keys.useToRotate(job, (key) => fetchToken(service, key, signal));
      return { database: await databaseNow(db), machine: new Date(), service: service.serviceTime() };
    },
  };

  async function look(key: LedgerKey, signal: AbortSignal): Promise<SeenInUse> {
    return seenInUse({ service, keys, job, key, today: dayOf(await databaseNow(db)), signal });
  }
}

async function create(
  { app, service }: RotationContext,
  job: RotationJob,
  comment: string,
  caller: Secret,
  signal: AbortSignal,
) {
  const { scopes, expiresInDays } = job;
  const tags = makesSelfHosted(scopes) ? [] : job.tags;
  const expiresInSeconds = expiresInDays === undefined ? undefined : expiresInDays * DAY_SECONDS;
  const request = { comment, scopes, tags, expiresInSeconds };
  const created = await createKey(service, job.project.id, request, caller, signal);
  app.scrubber.add(created.key);
  return created;
}

async function openKey({ app, db, masterKeys }: RotationContext, intentId: string) {
  const kept = await sealedKey(db, intentId);
  if (!kept) throw new AppError("database", `the ledger has no secret for ${intentId}`);
  const { apiKeyId, sealed } = kept;
  return { apiKeyId, key: app.scrubber.add(await openSealedKey(sealed, apiKeyId, masterKeys)) };
}

async function write(
  { app, db, masterKeys }: RotationContext,
  job: RotationJob,
  lease: Lease,
  change: LedgerChange,
  reason: string,
): Promise<void> {
  const base = { job, lease, actor: app.actor, changeId: randomUUID() };
  if (change.kind !== "stored") return writeLedger(db, base, change, reason);

  const { key, apiKeyId } = change.created;
  const sealed = { text: await sealKey(key, apiKeyId, masterKeys), masterKey: masterKeys.current.id };
  const until = performance.now() + STORE_MS_MAX;
  for (;;) {
    try {
      return await writeLedger(db, { ...base, sealed }, change, reason);
    } catch (error) {
      // The secret is shown once and is nowhere else: a database that is away for a moment must not cost it.
      if (error instanceof AppError || performance.now() > until) throw error;
      app.log.error({ rotation: job.name, apiKeyId, reason: errorText(error) }, "new key not stored yet");
      await sleep(STORE_WAIT_MS);
    }
  }
}
