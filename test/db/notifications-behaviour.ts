// Claiming notifications: only one of many replicas sends each, and if it dies, another one does. Run on each kind of database.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { claimNotification, markSent, readLastSent, releaseNotification } from "../../src/db/notifications.ts";

export function testNotificationClaims(db: Database): void {
  /** A subject of its own for each test. */
  function newSubject(): string {
    return `export ${randomUUID()}`;
  }

  async function lastSentOf(subject: string) {
    return (await readLastSent(db)).get(subject);
  }

  async function expireClaim(subject: string): Promise<void> {
    await sql`
      update usage_export.notice set claimed_until = claimed_until - interval '60 seconds' where subject = ${subject}
    `.execute(db);
  }

  /** Claims the subject as the only replica. */
  async function claimAlone(subject: string): Promise<string> {
    const claim = await claimNotification(db, subject, await lastSentOf(subject));
    if (claim === undefined) throw new Error(`expected to be alone with ${subject}`);
    return claim;
  }

  test("of eight replicas one can claim the subject of a sent notification", async () => {
    const subject = newSubject();
    await markSent(db, { subject, state: "wrong" }, await claimAlone(subject));
    expect(await lastSentOf(subject)).toMatchObject({ state: "wrong" });

    const others = await lastSentOf(subject);
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimNotification(db, subject, others)));
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
  });

  test("another replica can claim a subject after the claim has expired", async () => {
    const subject = newSubject();
    await claimAlone(subject);
    expect(await claimNotification(db, subject, await lastSentOf(subject))).toBeUndefined();
    await expireClaim(subject);

    await markSent(db, { subject, state: "wrong" }, await claimAlone(subject));
    expect(await lastSentOf(subject)).toMatchObject({ state: "wrong" });
  });

  test("a claim from before the clock was set back by a day does not block others", async () => {
    const subject = newSubject();
    await claimAlone(subject);
    await sql`
      update usage_export.notice set claimed_until = claimed_until + interval '1 day' where subject = ${subject}
    `.execute(db);
    expect(await claimNotification(db, subject, await lastSentOf(subject))).toBeDefined();
  });

  test("a replica whose claim has expired and was taken over can neither mark nor release the notification", async () => {
    const subject = newSubject();
    const expired = await claimAlone(subject);
    await expireClaim(subject);
    await claimAlone(subject);
    await markSent(db, { subject, state: "wrong" }, expired);
    await releaseNotification(db, subject, expired);

    expect(await lastSentOf(subject)).toMatchObject({ state: "well" });
    expect(await claimNotification(db, subject, await lastSentOf(subject))).toBeUndefined();
  });

  test("a notification about many subjects marks each of them, even one that already had its own", async () => {
    const [known, other, many] = [newSubject(), newSubject(), newSubject()];
    await markSent(db, { subject: known, state: "well" }, await claimAlone(known));
    await markSent(db, { subject: many, state: "wrong", covers: [known, other] }, await claimAlone(many));
    for (const subject of [known, other]) expect(await lastSentOf(subject)).toMatchObject({ state: "wrong" });
  });

  test("a replica can't claim with a state that was read before later notifications", async () => {
    const subject = newSubject();
    await markSent(db, { subject, state: "well" }, await claimAlone(subject));
    const old = await lastSentOf(subject);
    await markSent(db, { subject, state: "wrong" }, await claimAlone(subject));
    await markSent(db, { subject, state: "well" }, await claimAlone(subject));

    expect(await lastSentOf(subject)).toMatchObject({ state: old?.state });
    expect(await claimNotification(db, subject, old)).toBeUndefined();
  });
}
