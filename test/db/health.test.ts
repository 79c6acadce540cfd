import { testDatabase } from "../support/database.ts";
import { testFigures } from "./health-behaviour.ts";

const { db } = await testDatabase();

testFigures(db);
