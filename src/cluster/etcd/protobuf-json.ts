/**
 * The JSON form of Protocol Buffers messages, as grpc-gateway writes and reads it in etcd 3.4 and 3.5: fields keep their
 * names from the .proto file, 64-bit integers are strings, bytes are base64, enums are names, and default values are
 * omitted. https://protobuf.dev/programming-guides/json/
 */
import { StringDecoder } from "node:string_decoder";
import { EtcdError } from "./errors.ts";
import { type Field, MAX_DEPTH, type Message } from "./protobuf.ts";

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Returns a message as plain data for `JSON.stringify`. */
export function toJson({ fields }: Message<unknown>, value: object): Json {
  const json: Record<string, Json> = {};
  for (const [name, field] of Object.entries(fields)) {
    const own = (value as Record<string, unknown>)[name];
    if (own === undefined || own === field.absent) continue;
    if (!field.isList) json[name] = oneToJson(field, own);
    else if ((own as unknown[]).length > 0) json[name] = (own as unknown[]).map((each) => oneToJson(field, each));
  }
  return json;
}

function oneToJson({ kind, names }: Field<unknown>, value: unknown): Json {
  if (typeof kind === "function") return toJson(kind(), value as object);
  if (kind === "bytes") return Buffer.from(value as string, "latin1").toString("base64");
  if (kind === "number") return String(value);
  if (kind === "code") return names?.[value as number] ?? (value as number);
  return value as Json;
}

/**
 * Reads a message from JSON text. Both forms of a field's name are accepted, `range_end` and `rangeEnd`. Unknown fields
 * are ignored.
 * @throws RangeError if the text is not a valid message
 */
export function fromJson<T>(message: Message<T>, text: string): T {
  let json: Json;
  try {
    json = JSON.parse(text.replaceAll(LONG_NUMBERS, (found) => (found.startsWith('"') ? found : `"${found}"`))) as Json;
  } catch (error) {
    throw new RangeError(`invalid JSON: ${(error as Error).message}`);
  }
  return messageOf(message, json, 0) as T;
}

/** Strings, and integers that may be too long for a JavaScript number. The latter are read as strings. */
const LONG_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\b\d{16,}\b(?![.eE])/gu;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const INTEGER = /^-?\d{1,20}$/;

function messageOf({ fields }: Message<unknown>, json: Json, depth: number): object {
  if (depth > MAX_DEPTH) throw new RangeError(`expected messages nested at most ${MAX_DEPTH} deep`);
  if (json === null || typeof json !== "object" || Array.isArray(json)) throw unexpected("an object", json);
  const given = json as Readonly<Record<string, Json>>;
  const value: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const own = Object.hasOwn(given, name) ? given[name] : given[camelCase(name)];
    if (own === undefined || own === null) value[name] = field.isList ? [] : field.absent;
    else if (!field.isList) value[name] = oneOf(field, own, depth);
    else if (Array.isArray(own)) value[name] = own.map((each) => oneOf(field, each, depth));
    else throw unexpected(`a list as ${name}`, own);
  }
  return value;
}

const camelCase = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function oneOf({ kind, names }: Field<unknown>, json: Json, depth: number): unknown {
  if (typeof kind === "function") return messageOf(kind(), json, depth + 1);
  switch (kind) {
    case "bytes":
      if (typeof json !== "string" || !BASE64.test(json)) throw unexpected("bytes in base64", json);
      return Buffer.from(json, "base64").toString("latin1");
    case "string":
      if (typeof json !== "string") throw unexpected("a string", json);
      return json;
    case "bool":
      if (typeof json !== "boolean") throw unexpected("true or false", json);
      return json;
    case "code": {
      const number = typeof json === "string" ? (names?.indexOf(json) ?? -1) : json;
      if (!Number.isInteger(number) || (number as number) < 0) throw unexpected(`one of ${names?.join(", ")}`, json);
      return number;
    }
    default:
      return integerOf(kind, json);
  }
}

function integerOf(kind: "number" | "id" | "unsignedId", json: Json): number | string {
  const text = typeof json === "number" ? String(json) : json;
  if (typeof text !== "string" || !INTEGER.test(text)) throw unexpected("an integer", json);
  const integer = BigInt(text);
  const exact = kind === "unsignedId" ? BigInt.asUintN(64, integer) : BigInt.asIntN(64, integer);
  if (exact !== integer) throw unexpected("an integer of 64 bits", json);
  return kind === "number" ? Number(exact) : String(exact);
}

function unexpected(wanted: string, json: Json): RangeError {
  const shown = JSON.stringify(json);
  return new RangeError(`expected ${wanted}, got ${shown.length > 40 ? `${shown.slice(0, 40)}…` : shown}`);
}

const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [...`"\\{}[]`].map((sign) => sign.charCodeAt(0));

/** Splits a stream of JSON objects, with or without separators, into the text of each object. */
export class JsonObjects {
  readonly #maxLength: number;
  readonly #decoder = new StringDecoder("utf8");
  #text = "";
  /** Everything before this position has been looked at. */
  #at = 0;
  #depth = 0;
  #isString = false;

  /** @param maxLength the maximum length of an object, in UTF-16 units */
  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /**
   * Returns the objects that these bytes complete.
   * @throws EtcdError `requestTooLarge`
   */
  take(bytes: Buffer): string[] {
    this.#text += this.#decoder.write(bytes);
    const found: string[] = [];
    let start = 0;
    for (; this.#at < this.#text.length; this.#at++) {
      if (!this.#endsObject(this.#text.charCodeAt(this.#at))) continue;
      found.push(this.#text.slice(start, this.#at + 1));
      start = this.#at + 1;
    }
    this.#text = this.#text.slice(start);
    this.#at -= start;
    if (this.#text.length > this.#maxLength) throw new EtcdError("requestTooLarge");
    return found;
  }

  #endsObject(unit: number): boolean {
    if (this.#isString) {
      if (unit === BACKSLASH)
        this.#at += 1; // The escaped character does not end the string.
      else if (unit === QUOTE) this.#isString = false;
    } else if (unit === QUOTE) this.#isString = true;
    else if (unit === OPEN || unit === OPEN_LIST) this.#depth += 1;
    else if (unit === CLOSE || unit === CLOSE_LIST) {
      this.#depth = Math.max(0, this.#depth - 1);
      return this.#depth === 0;
    }
    return false;
  }

  /** Returns the text after the last complete object. */
  rest(): string {
    return this.#text.trim();
  }
}
