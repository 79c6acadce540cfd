import { testDatabase } from "../support/database.ts";
import { testNoticeClaims } from "./notifications-behaviour.ts";

const { db } = await testDatabase();

testNoticeClaims(db);
