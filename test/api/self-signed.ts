// Makes a certificate that nobody vouches for, so that no private key has to lie in the repository.

import { generateKeyPairSync, sign } from "node:crypto";

const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");

export function selfSignedCertificate(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from("127.0.0.1")))));
  const body = sequence(
    der(0x02, Buffer.from([1])),
    ECDSA_WITH_SHA256,
    name,
    sequence(der(0x17, Buffer.from("200101000000Z")), der(0x17, Buffer.from("490101000000Z"))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", body, privateKey)]));
  const certificate = sequence(body, ECDSA_WITH_SHA256, signature);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64")}\n-----END CERTIFICATE-----\n`,
  };
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

/** Tag, length and content; a length above 127 is written in two bytes here, none is longer. */
function der(tag: number, content: Buffer): Buffer {
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
