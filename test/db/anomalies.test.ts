import { testDatabase } from "../support/database.ts";
import { testAnomalies } from "./anomalies-behaviour.ts";

const { db } = await testDatabase();
testAnomalies(db);
