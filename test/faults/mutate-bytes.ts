// Ways to change the bytes of an answer, whatever they mean. Pure.

type Random = () => number;

const below = (random: Random, end: number) => Math.floor(random() * end);

const HOSTILE_BYTES = [
  "\\ud800",
  "\u0000",
  "\u2028",
  "\u202e",
  "__proto__",
  "1e999",
  '"',
  "\\",
  "}",
  "]",
  ",",
  "[]",
  "null",
];
const RAW_BYTES: readonly (readonly [number, ...number[]])[] = [
  [0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xe2, 0x82],
  [0xef, 0xbb, 0xbf],
];

type Bytes = readonly [name: string, change: (bytes: Buffer, random: Random) => Buffer];
export const BYTES: readonly [Bytes, ...Bytes[]] = [
  [
    "a bit flipped",
    (bytes, random) => withByte(bytes, below(random, bytes.length), (byte) => byte ^ (1 << below(random, 8))),
  ],
  ["a byte replaced", (bytes, random) => withByte(bytes, below(random, bytes.length), () => below(random, 256))],
  [
    "a digit replaced",
    (bytes, random) => {
      const digits = [...bytes.keys()].filter((at) => /\d/.test(String.fromCharCode(bytes[at] ?? 0)));
      return withByte(bytes, digits[below(random, digits.length)] ?? 0, () => 0x30 + below(random, 10));
    },
  ],
  [
    "bytes removed",
    (bytes, random) => {
      const at = below(random, bytes.length);
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + below(random, 8))]);
    },
  ],
  [
    "bytes doubled",
    (bytes, random) => {
      const at = below(random, bytes.length);
      const end = at + 1 + below(random, 60);
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    },
  ],
  [
    "hostile text inserted",
    (bytes, random) => insert(bytes, Buffer.from(HOSTILE_BYTES[below(random, HOSTILE_BYTES.length)] ?? ""), random),
  ],
  [
    "bytes that are not UTF-8 inserted",
    (bytes, random) => insert(bytes, Buffer.from(RAW_BYTES[below(random, RAW_BYTES.length)] ?? []), random),
  ],
  ["a byte order mark before it", (bytes) => Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes])],
  ["space around it", (bytes) => Buffer.concat([Buffer.from("\n\t "), bytes, Buffer.from(" \r\n")])],
  [
    "something after it",
    (bytes, random) => Buffer.concat([bytes, Buffer.from(random() < 0.5 ? "}" : '{"results":[]}')]),
  ],
  ["cut", (bytes, random) => bytes.subarray(0, below(random, bytes.length))],
];

function withByte(bytes: Buffer, at: number, change: (byte: number) => number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = change(changed[at] ?? 0);
  return changed;
}

function insert(bytes: Buffer, added: Buffer, random: Random): Buffer {
  const at = below(random, bytes.length + 1);
  return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at)]);
}
