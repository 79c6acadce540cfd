// Makes certificates, and authorities that sign them. They are made in each run, so the repository has no private key.

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export type Certificate = { readonly key: string; readonly cert: string };
export type Authority = Certificate & { readonly name: string };

/** The tags of ASN.1 (DER): of types, and of the fields IP address, version and extensions of a certificate. */
const TAG = {
  ...{ integer: 0x02, bitString: 0x03, octetString: 0x04, utf8String: 0x0c, generalizedTime: 0x18 },
  ...{ sequence: 0x30, set: 0x31, ipAddress: 0x87, version: 0xa0, extensions: 0xa3 },
};
const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");
const SUBJECT_ALT_NAME = Buffer.from("0603551d11", "hex");
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex");
const TRUE = Buffer.from("0101ff", "hex");
const LOOPBACK = der(TAG.ipAddress, Buffer.from([127, 0, 0, 1]));
const VALIDITY = sequence(...["20200101000000Z", "20490101000000Z"].map((time) => der(TAG.generalizedTime, time)));

let serial = 1;

/** Makes an authority that can sign certificates. A client is told to trust the authority's own certificate. */
export function authority(name: string): Authority {
  const extensions = [sequence(BASIC_CONSTRAINTS, TRUE, der(TAG.octetString, sequence(TRUE)))];
  return { name, ...signed({ name, issuer: name, extensions }) };
}

/** A certificate for 127.0.0.1. Without an authority it is self-signed. */
export function certificate(by?: Authority): Certificate {
  const name = "service";
  return signed({
    name,
    issuer: by?.name ?? name,
    ...(by && { signer: createPrivateKey(by.key) }),
    extensions: [sequence(SUBJECT_ALT_NAME, der(TAG.octetString, sequence(LOOPBACK)))],
  });
}

type Content = {
  readonly name: string;
  readonly issuer: string;
  readonly signer?: KeyObject;
  readonly extensions: readonly Buffer[];
};

function signed({ name, issuer, signer, extensions }: Content): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const body = sequence(
    der(TAG.version, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, Buffer.from([serial++])),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    VALIDITY,
    nameOf(name),
    publicKey.export({ type: "spki", format: "der" }),
    der(TAG.extensions, sequence(...extensions)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign("sha256", body, signer ?? privateKey)]);
  const bytes = sequence(body, ECDSA_WITH_SHA256, der(TAG.bitString, signature));
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`,
  };
}

function nameOf(text: string): Buffer {
  return sequence(der(TAG.set, sequence(COMMON_NAME, der(TAG.utf8String, text))));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(TAG.sequence, Buffer.concat(parts));
}

/** Tag, length and content. A length above 127 is written in two bytes, which is enough here. */
function der(tag: number, value: Buffer | string): Buffer {
  const content = typeof value === "string" ? Buffer.from(value) : value;
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
