import { testDatabase } from "../support/database.ts";
import { testBehaviour } from "./behaviour.ts";

const { db } = await testDatabase();

testBehaviour(db);
