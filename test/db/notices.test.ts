import { testDatabase } from "../support/database.ts";
import { testNoticeClaims } from "./notices-behaviour.ts";

const { db } = await testDatabase();

testNoticeClaims(db);
