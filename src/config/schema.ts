// The JSON Schema of jobs.config.json, made from the shape that checks it.

import { z } from "zod";
import { Shape } from "./shape.ts";

/** For editors: it describes what may be written. References between parts of the file are checked by `check` alone. */
export function configJsonSchema(): object {
  return z.toJSONSchema(Shape.meta({ title: "usage-export: jobs.config.json" }), {
    target: "draft-2020-12",
    io: "input",
  });
}
