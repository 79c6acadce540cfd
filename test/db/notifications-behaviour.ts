// Who may say what, on whichever database: of many replicas one, and another where that one died.

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

  async function saidOf(subject: string) {
    return (await readLastSent(db)).get(subject);
  }

  async function claimRunsOut(subject: string): Promise<void> {
    await sql`
      update usage_export.notice set claimed_until = claimed_until - interval '60 seconds' where subject = ${subject}
    `.execute(db);
  }

  /** Claims what was said last, as somebody who is alone. */
  async function claimed(subject: string): Promise<string> {
    const claim = await claimNotification(db, subject, await saidOf(subject));
    if (claim === undefined) throw new Error(`expected to be alone with ${subject}`);
    return claim;
  }

  test("of those who want to say the same at once, one may", async () => {
    const subject = newSubject();
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimNotification(db, subject, undefined)));

    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
    expect(await saidOf(subject)).toMatchObject({ state: "well" });
  });

  test("what was said is known to all, and can be claimed again", async () => {
    const subject = newSubject();
    await markSent(db, { subject, state: "wrong" }, await claimed(subject));
    expect(await saidOf(subject)).toMatchObject({ state: "wrong" });

    const others = await saidOf(subject);
    const claims = await Promise.all(Array.from({ length: 8 }, () => claimNotification(db, subject, others)));
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
  });

  test("where somebody died before it was said, another may once the claim ran out", async () => {
    const subject = newSubject();
    await claimed(subject);
    expect(await claimNotification(db, subject, await saidOf(subject))).toBeUndefined();
    await claimRunsOut(subject);

    await markSent(db, { subject, state: "wrong" }, await claimed(subject));
    expect(await saidOf(subject)).toMatchObject({ state: "wrong" });
  });

  test("a claim of a clock that was set back a day since keeps nobody from saying it", async () => {
    const subject = newSubject();
    await claimed(subject);
    await sql`
      update usage_export.notice set claimed_until = claimed_until + interval '1 day' where subject = ${subject}
    `.execute(db);
    expect(await claimNotification(db, subject, await saidOf(subject))).toBeDefined();
  });

  test("who slept through its claim notes nothing and gives nothing back", async () => {
    const subject = newSubject();
    const slept = await claimed(subject);
    await claimRunsOut(subject);
    await claimed(subject);
    await markSent(db, { subject, state: "wrong" }, slept);
    await releaseNotification(db, subject, slept);

    expect(await saidOf(subject)).toMatchObject({ state: "well" });
    expect(await claimNotification(db, subject, await saidOf(subject))).toBeUndefined();
  });

  test("a notification that another worker has sent meanwhile is not sent again", async () => {
    const subject = newSubject();
    const claim = await claimed(subject);
    const seen = await saidOf(subject);
    await markSent(db, { subject, state: "wrong" }, claim);

    expect(await claimNotification(db, subject, seen)).toBeUndefined();
  });

  test("what could not be said may be said by anybody at once", async () => {
    const subject = newSubject();
    await releaseNotification(db, subject, await claimed(subject));

    expect(await claimNotification(db, subject, await saidOf(subject))).toBeDefined();
  });

  test("who read before others said it twice, and so the same as before, says nothing old", async () => {
    const subject = newSubject();
    await markSent(db, { subject, state: "well" }, await claimed(subject));
    const old = await saidOf(subject);
    await markSent(db, { subject, state: "wrong" }, await claimed(subject));
    await markSent(db, { subject, state: "well" }, await claimed(subject));

    expect(await saidOf(subject)).toMatchObject({ state: old?.state });
    expect(await claimNotification(db, subject, old)).toBeUndefined();
  });
}
