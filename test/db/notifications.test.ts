import { testDatabase } from "../support/database.ts";
import { testNotificationClaims } from "./notifications-behaviour.ts";

const { db } = await testDatabase();

testNotificationClaims(db);
