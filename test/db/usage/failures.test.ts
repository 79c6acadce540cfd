import { testDatabase } from "../../support/database.ts";
import { testFailures } from "./failures-behaviour.ts";

const { db } = await testDatabase();

testFailures(db);
