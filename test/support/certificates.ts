// Makes certificates of an authority of the tests, valid ones and ones that must be refused. They are made in each run, so that the
// repository has no private key and no certificate that expires.

import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export type Certificate = { readonly key: string; readonly cert: string };
export type Authority = Certificate & { readonly name: string };

export type CertificateOptions = {
  /** The authority that signs the certificate; left out, the certificate is self-signed. */
  readonly by?: Authority;
  /** The IP address that the certificate is for; left out, 127.0.0.1. */
  readonly ip?: readonly [number, number, number, number];
  readonly from?: string;
  readonly until?: string;
};

const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");
const SUBJECT_ALT_NAME = Buffer.from("0603551d11", "hex");
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex");
const TRUE = Buffer.from("0101ff", "hex");

let serial = 1;

/** Makes an authority that can sign certificates. A client is told to trust the authority's own certificate. */
export function authority(name: string): Authority {
  const extensions = [sequence(BASIC_CONSTRAINTS, TRUE, der(0x04, sequence(TRUE)))];
  return { name, ...signed({ name, issuer: name, extensions, from: "20200101000000Z", until: "20490101000000Z" }) };
}

export function certificate({ by, ip = [127, 0, 0, 1], from, until }: CertificateOptions = {}): Certificate {
  const name = "service";
  const address = der(0x87, Buffer.from(ip));
  return signed({
    name,
    issuer: by?.name ?? name,
    ...(by && { signer: createPrivateKey(by.key) }),
    extensions: [sequence(SUBJECT_ALT_NAME, der(0x04, sequence(address)))],
    from: from ?? "20200101000000Z",
    until: until ?? "20490101000000Z",
  });
}

type Body = {
  readonly name: string;
  readonly issuer: string;
  readonly signer?: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly from: string;
  readonly until: string;
};

function signed({ name, issuer, signer, extensions, from, until }: Body): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const time = (text: string) => der(0x18, Buffer.from(text));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([serial++])),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    sequence(time(from), time(until)),
    nameOf(name),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", body, signer ?? privateKey)]));
  const bytes = sequence(body, ECDSA_WITH_SHA256, signature);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${bytes.toString("base64")}\n-----END CERTIFICATE-----\n`,
  };
}

function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(text)))));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

/** Tag, length and content. A length above 127 is written in two bytes, which is enough here. */
function der(tag: number, content: Buffer): Buffer {
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
