// Where the monitor listens, and who may look.

import { z } from "zod";
import { shown } from "./fault.ts";
import { object, wholeNumber } from "./fields.ts";
import { secret } from "./secret-shape.ts";

const Token = secret("token").describe(
  "The token that is asked for, as `Authorization: Bearer …`. Never the token itself.",
);
const Password = secret("password").describe("The password that is asked for. Never the password itself.");

const Access = z.union(
  [
    object({ bearer: Token }),
    object({
      basic: object({
        username: z
          .string()
          .regex(/^[A-Za-z0-9._@+-]{1,100}$/, 'a name of 1 to 100 letters, digits, ".", "_", "@", "+" and "-"')
          .describe("The user name that is asked for."),
        password: Password,
      }).describe("A user name and password, which a browser asks for."),
    }),
  ],
  {
    error: '{ "bearer": { "env": "NAME" } } or { "basic": { "username": "…", "password": { "env": "NAME" } } }',
  },
);

const PublicUrl = z
  .string()
  .superRefine((text, context) => {
    if (/^https?:\/\/[^\s\\@?#<>"]+$/i.test(text) && URL.canParse(text)) return;
    const got = text.includes("@") ? "" : `; got ${shown(text)}`;
    const message = `expected an address such as "https://usage.example.com", without a name, password, "?" and "#"${got}`;
    context.addIssue({ code: "custom", message });
  })
  .describe(
    "The address at which people reach the dashboard, through any reverse proxy. Notices name it and link to it.",
  );

export const Monitor = object({
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:_-]{1,253}$/, 'a host name or address such as "127.0.0.1", without a port')
    .default("127.0.0.1")
    .describe("The address the dashboard, the metrics and the health checks listen on."),
  port: wholeNumber(0, 65_535).default(9464).describe("Its port; 0 takes a free one."),
  publicUrl: PublicUrl.exactOptional(),
  access: Access.exactOptional().describe(
    "What is asked for before anything but a health check is answered. Without it the dashboard is open on this machine's own address (127.0.0.1), and shut on any other.",
  ),
});
