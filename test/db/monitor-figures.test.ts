import { testDatabase } from "../support/database.ts";
import { testFigures } from "./figures-behaviour.ts";

const { db } = await testDatabase();

testFigures(db);
