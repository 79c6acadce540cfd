import { testDatabase } from "../../support/database.ts";
import { testEmptyGuard } from "./guard-behaviour.ts";
import { testMerge } from "./merge-behaviour.ts";
import { testUndated } from "./undated-behaviour.ts";

const { db } = await testDatabase();

testMerge(db);
testEmptyGuard(db);
testUndated(db);
