// What a service, or something that pretends to be one, may put on the wire instead of an answer.

import type net from "node:net";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";

/** Called with the socket that a request came on, and with a valid answer to it. */
export type WireFault = (socket: net.Socket, sound: string) => void;

const JSON_TYPE = "content-type: application/json\r\n";

/** Writes this and closes the connection in order. */
const says =
  (make: (sound: string) => string | Uint8Array): WireFault =>
  (socket, sound) =>
    void socket.end(make(sound));

const head = (status: string, headers: string) => `HTTP/1.1 ${status}\r\n${headers}\r\n`;
const answered = (headers: string, body: (sound: string) => string | Uint8Array = (sound) => sound) =>
  says((sound) =>
    Buffer.concat([Buffer.from(head("200 OK", `${JSON_TYPE}${headers}`), "latin1"), Buffer.from(body(sound))]),
  );
const lengthOf = (sound: string, more = 0) => `content-length: ${Buffer.byteLength(sound) + more}\r\n`;

const drip =
  (text: (sound: string) => string, everyMs = 200): WireFault =>
  (socket, sound) => {
    const bytes = Buffer.from(text(sound));
    let at = 0;
    const timer = setInterval(() => socket.write(bytes.subarray(at, ++at)), everyMs);
    socket.on("close", () => clearInterval(timer));
  };

export const WIRE_FAULTS: Readonly<Record<string, WireFault>> = {
  "no answer": () => {},
  "the end, and no answer": says(() => ""),
  "a reset, and no answer": (socket) => void socket.resetAndDestroy(),
  "headers a byte at a time": drip((sound) => head("200 OK", `${JSON_TYPE}${lengthOf(sound)}`) + sound),
  "headers, then nothing": (socket, sound) => void socket.write(head("200 OK", JSON_TYPE + lengthOf(sound))),
  "a body a byte at a time": (socket, sound) => {
    socket.write(head("200 OK", JSON_TYPE + lengthOf(sound)));
    drip(() => sound)(socket, sound);
  },
  "a length that is too long": says((sound) => head("200 OK", JSON_TYPE + lengthOf(sound, 9)) + sound),
  "a length that is too long, and no end": (socket, sound) =>
    void socket.write(head("200 OK", JSON_TYPE + lengthOf(sound, 9)) + sound),
  "a length that is too short": says((sound) => head("200 OK", JSON_TYPE + lengthOf(sound, -9)) + sound),
  "two lengths": says((sound) => head("200 OK", JSON_TYPE + lengthOf(sound) + lengthOf(sound, 1)) + sound),
  "a length and chunks": says(
    (sound) => head("200 OK", `${JSON_TYPE}${lengthOf(sound)}transfer-encoding: chunked\r\n`) + chunk(sound),
  ),
  "a length below zero": answered("content-length: -1\r\n"),
  "a length that is no number": answered("content-length: many\r\n"),
  "a length that no number holds": answered(`content-length: ${"9".repeat(40)}\r\n`),
  "chunks without an end": answered("transfer-encoding: chunked\r\n", chunk),
  "chunks without an end, held open": (socket, sound) =>
    void socket.write(head("200 OK", `${JSON_TYPE}transfer-encoding: chunked\r\n`) + chunk(sound)),
  "a chunk longer than memory": answered("transfer-encoding: chunked\r\n", (sound) => `ffffffffffffffff\r\n${sound}`),
  "a chunk of no length": answered("transfer-encoding: chunked\r\n", (sound) => `zz\r\n${sound}\r\n0\r\n\r\n`),
  "a body cut at its end": answered("connection: close\r\n", (sound) => sound.slice(0, -1)),
  "a reset in the body": (socket, sound) => {
    socket.write(head("200 OK", JSON_TYPE + lengthOf(sound)) + sound.slice(0, 20), () => socket.resetAndDestroy());
  },
  "headers without an end": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const more = () => {
      while (socket.writable && socket.write(`x-more: ${"x".repeat(4_000)}\r\n`));
    };
    socket.on("drain", more);
    more();
  },
  "a header of a megabyte": answered(`x-long: ${"x".repeat(1 << 20)}\r\n`),
  "ten thousand headers": answered("x: y\r\n".repeat(10_000)),
  "a header with a NUL": answered("x-null: a\0b\r\n"),
  "a header without a name": answered(": nothing\r\n"),
  "100 Continue for ever": drip(() => "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000), 1),
  "a switch of protocols": says(() => head("101 Switching Protocols", "upgrade: websocket\r\nconnection: upgrade\r\n")),
  "no content": says(() => head("204 No Content", "")),
  "reset content": says(() => head("205 Reset Content", "content-length: 0\r\n")),
  "partial content": says((sound) => head("206 Partial Content", JSON_TYPE + lengthOf(sound)) + sound),
  "not modified": says(() => head("304 Not Modified", "")),
  "a status of four digits": says((sound) => head("2000 OK", JSON_TYPE + lengthOf(sound)) + sound),
  "a status that is none": says((sound) => head("abc OK", JSON_TYPE + lengthOf(sound)) + sound),
  "a status of its own": says((sound) => head("799 Strange", JSON_TYPE + lengthOf(sound)) + sound),
  "HTTP/0.9": says((sound) => sound),
  "HTTP/2": says(() => Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])),
  "a TLS alert": says(() => Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28])),
  noise: says(() => Buffer.from(Array.from({ length: 4_096 }, (_, n) => (n * 7919) & 0xff))),
  gzip: answered("content-encoding: gzip\r\n", (sound) => gzipSync(sound)),
  brotli: answered("content-encoding: br\r\n", (sound) => brotliCompressSync(sound)),
  zstd: answered("content-encoding: zstd\r\n", (sound) => zstdCompressSync(sound)),
  "gzip, a thousand times": answered(`content-encoding: ${Array(1_000).fill("gzip").join(", ")}\r\n`),
  "gzip that is not said": answered("", (sound) => gzipSync(sound)),
  "compressed by the transfer": answered("transfer-encoding: gzip, chunked\r\n", (sound) => chunk(sound)),
};

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
