// Reads a Parquet file back into the texts from which it was made.

import { parquetMetadata, parquetReadObjects, type SchemaElement } from "hyparquet";
import type { Row, View } from "../../src/dump/view.ts";

export type ParquetFile = {
  readonly rows: readonly Row[];
  /** The type of each column, as hyparquet describes it. */
  readonly types: Readonly<Record<string, SchemaElement>>;
  readonly groupSizes: readonly number[];
  readonly keyValues: Readonly<Record<string, string | undefined>>;
};

export async function readParquet(
  { columns }: Pick<View, "columns">,
  pieces: AsyncIterable<unknown>,
): Promise<ParquetFile> {
  const bytes = Buffer.concat((await Array.fromAsync(pieces)).filter((piece) => piece instanceof Uint8Array));
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const metadata = parquetMetadata(file);
  const types = Object.fromEntries(metadata.schema.slice(1).map((element) => [element.name, { ...element }]));
  // hyparquet would convert a decimal to a float; without the type it returns the bytes.
  for (const element of metadata.schema) if (element.converted_type === "DECIMAL") delete element.converted_type;
  const objects = await parquetReadObjects({
    file,
    metadata,
    parsers: { timestampFromMicroseconds: instantText, dateFromDays: dayText, stringFromBytes: utf8Text },
  });
  return {
    rows: objects.map((object) => columns.map(({ name, kind }) => textOf(kind, object[name], types[name]?.scale ?? 0))),
    types,
    groupSizes: metadata.row_groups.map((group) => Number(group.num_rows)),
    keyValues: Object.fromEntries((metadata.key_value_metadata ?? []).map(({ key, value }) => [key, value])),
  };
}

function textOf(kind: string, value: unknown, scale: number): string | null {
  if (value === null || value === undefined) return null;
  return kind === "number" && value instanceof Uint8Array ? decimalText(value, scale) : String(value);
}

/** The decimal number as text, without zeros at its end. */
function decimalText(bytes: Uint8Array, scale: number): string {
  const unscaled = BigInt.asIntN(bytes.length * 8, BigInt(`0x${Buffer.from(bytes).toString("hex")}`));
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  const text = `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, "");
  return unscaled < 0n ? `-${text}` : text;
}

/** Replaces hyparquet's own decoder, which drops a byte order mark. */
function utf8Text(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}

function instantText(micros: bigint | undefined): string | undefined {
  if (micros === undefined || micros === null) return undefined;
  const sixDigits = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((micros - sixDigits) / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(sixDigits).padStart(6, "0")}Z`;
}

function dayText(days: number | undefined): string | undefined {
  return days === undefined || days === null ? undefined : new Date(days * 86_400_000).toISOString().slice(0, 10);
}
