// Finds secrets (of ASCII characters) in text, whole or in part, in the encodings that programs commonly write. Pure.

/** This many consecutive characters of a secret are no coincidence. A shorter secret must be whole, or in a list of bytes nearly whole. */
const RUN_LENGTH = 16;
/** Sixteen bytes fill at least this many characters of base64, at any offset. */
const RUN_LENGTH_BASE64 = 20;
const SECRET_LENGTH_MIN = 8;

type Form = { readonly encoding: string; readonly text: string; readonly runLength: number };
type Found = { readonly secret: string; readonly encoding: string };

/** Returns the secrets that the text contains, and how each is encoded there. Ignores case. */
export function findSecrets(text: string, secrets: readonly string[]): readonly Found[] {
  // Decoded twice, because hex bytes shown by a database may themselves contain escaped text.
  const once = decodeEscapes(text);
  const readings = [...new Set([text, once, decodeEscapes(once)].map((reading) => reading.toLowerCase()))];
  return secrets.flatMap((secret) =>
    formsOf(secret)
      .filter((form) => readings.some((reading) => holdsRun(reading, form)))
      .map(({ encoding }) => ({ secret, encoding })),
  );
}

const known = new Map<string, readonly Form[]>();

/** Cached, because the same secrets are looked for in hundreds of texts, such as the command lines of all processes. */
function formsOf(secret: string): readonly Form[] {
  const forms = known.get(secret) ?? encoded(secret);
  known.set(secret, forms);
  return forms;
}

/** Percent-encoding, HTML entities, UTF-16 and the escapes of JSON and Postgres need no form: they are decoded in the searched text. */
function encoded(secret: string): readonly Form[] {
  if (secret.length < SECRET_LENGTH_MIN) {
    throw new Error(`a secret to look for has at least ${SECRET_LENGTH_MIN} characters, got ${secret.length}`);
  }
  const bytes = Buffer.from(secret);
  const forms = [
    { encoding: "plain", text: secret, runLength: RUN_LENGTH },
    { encoding: "reversed", text: [...secret].toReversed().join(""), runLength: RUN_LENGTH },
    { encoding: "hex", text: bytes.toString("hex"), runLength: 2 * RUN_LENGTH },
    // The next two are how a Buffer is printed, and how it is written as JSON.
    { encoding: "hex bytes", text: [...bytes].map((byte) => hexOf(byte)).join(" "), runLength: 3 * RUN_LENGTH - 1 },
    { encoding: "a list of bytes", text: [...bytes].join(","), runLength: 3 * RUN_LENGTH },
    ...[0, 1, 2].flatMap((offset) => [
      { encoding: "base64", text: base64At(bytes, offset), runLength: RUN_LENGTH_BASE64 },
      { encoding: "base64url", text: toUrlAlphabet(base64At(bytes, offset)), runLength: RUN_LENGTH_BASE64 },
    ]),
  ];
  return forms
    .map((form) => ({ ...form, text: form.text.toLowerCase(), runLength: Math.min(form.runLength, form.text.length) }))
    .filter((form, i, all) => all.findIndex((other) => other.text === form.text) === i);
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}

/** The base64 of the bytes when `offset` bytes come before them, without the edge characters that share bits with their neighbours. */
function base64At(bytes: Buffer, offset: number): string {
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  const first = Math.ceil((offset * 8) / 6);
  const end = Math.floor(((offset + bytes.length) * 8) / 6);
  return encoded.slice(first, end);
}

function toUrlAlphabet(base64: string): string {
  return base64.replaceAll("+", "-").replaceAll("/", "_");
}

const NAMED_ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decodeEscapes(text: string): string {
  const decoded = text
    // A list of bytes may be printed with spaces or line breaks after its commas.
    .replaceAll(/(?<=\d),\s+(?=\d)/g, ",")
    .replaceAll(/\\+x((?:[0-9a-f]{2})+)/gi, (_, digits) => Buffer.from(digits, "hex").toString("latin1"))
    .replaceAll(/\\+([0-3][0-7]{2})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 8)))
    .replaceAll(/%([0-9a-f]{2})/gi, fromHex)
    .replaceAll(/\\+u([0-9a-f]{4})/gi, fromHex)
    .replaceAll(/&#x([0-9a-f]{1,6});/gi, fromHex)
    .replaceAll(/&#([0-9]{1,7});/g, (_, digits) => String.fromCharCode(Number(digits)))
    .replaceAll(/&(amp|lt|gt|quot|apos);/gi, (_, name) => NAMED_ENTITIES[name.toLowerCase()] ?? "");
  // UTF-16 text that is read as one byte a character has a null character after each letter.
  return decoded.replaceAll("\0", "");
}

function fromHex(_: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16));
}

/** Whether the text has `runLength` consecutive characters of the form. */
function holdsRun(text: string, { text: form, runLength }: Form): boolean {
  // The form is cut into blocks so short that every such run contains a whole one. Each block that is found is extended on both sides.
  const blockLength = Math.floor((runLength + 1) / 2);
  for (let start = 0; start + blockLength <= form.length; start += blockLength) {
    const block = form.slice(start, start + blockLength);
    for (let at = text.indexOf(block); at !== -1; at = text.indexOf(block, at + 1)) {
      if (runAt(text, at, form, start) >= runLength) return true;
    }
  }
  return false;
}

/** How many consecutive characters around these two positions are the same. */
function runAt(text: string, textAt: number, form: string, formAt: number): number {
  let before = 0;
  while (before < formAt && before < textAt && text[textAt - before - 1] === form[formAt - before - 1]) before++;
  let after = 0;
  while (formAt + after < form.length && text[textAt + after] === form[formAt + after]) after++;
  return before + after;
}
