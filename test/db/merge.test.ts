import { testDatabase } from "../support/database.ts";
import { testMerge } from "./merge-behaviour.ts";

const { db } = await testDatabase();

testMerge(db);
