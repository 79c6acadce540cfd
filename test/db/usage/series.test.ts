import { testDatabase } from "../../support/database.ts";
import { testSeries } from "./series-behaviour.ts";

const { db } = await testDatabase();

testSeries(db);
