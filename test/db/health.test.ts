import { testDatabase } from "../support/database.ts";
import { testHealth } from "./health-behaviour.ts";

const { db } = await testDatabase();

testHealth(db);
