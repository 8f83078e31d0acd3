/**
 * The subset of Protocol Buffers version 3 that etcd's API needs. Encodes and decodes messages according to a table of
 * fields. Unknown fields are skipped. https://protobuf.dev/programming-guides/encoding/
 */

/**
 * `bytes`: a string with one character per byte; `id`: a 64-bit integer as a decimal string; `number`: a 64-bit
 * integer, limited to the exact range of a JavaScript number; `code`: an enum value.
 */
type Kind = "bytes" | "string" | "bool" | "number" | "id" | "unsignedId" | "code";

/** A field of a message. */
export interface Field<T> {
  readonly number: number;
  readonly kind: Kind | (() => Message<unknown>);
  /** The names of an enum's values, which JSON uses. */
  readonly names?: readonly string[];
  readonly isList: boolean;
  /** The value used if the field is absent. */
  readonly absent: T;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;
type Of<F extends Fields> = { -readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** Encodes and decodes one kind of message. */
export interface Message<T> {
  readonly fields: Fields;
  encode(value: Partial<T>): Uint8Array;
  /** @throws RangeError if the bytes are not a valid message */
  decode(bytes: Uint8Array): T;
}

const scalar =
  <T>(kind: Kind, absent: T) =>
  (number: number): Field<T> => ({ number, kind, isList: false, absent });

export const bytes = scalar<string>("bytes", "");
export const string = scalar<string>("string", "");
export const bool = scalar<boolean>("bool", false);
export const number = scalar<number>("number", 0);
export const id = scalar<string>("id", "0");
export const unsignedId = scalar<string>("unsignedId", "0");
/** Declares an enum. @param names the values' names, in order */
export const code = (number: number, names: readonly string[]): Field<number> => ({
  ...scalar<number>("code", 0)(number),
  names,
});
/** Declares a field with a nested message. Its value is null if it is absent. */
export const part = <T>(number: number, kind: () => Message<T>): Field<Partial<T> | null> => ({
  number,
  kind,
  isList: false,
  absent: null,
});
/** Declares a repeated field. */
export const list = <T>(field: Field<T>): Field<Exclude<T, null>[]> => ({ ...field, isList: true, absent: [] });

/** The maximum depth of nested messages. */
export const MAX_DEPTH = 32;
const VARINT = 0;
const FIXED_64 = 1;
const DELIMITED = 2;
const FIXED_32 = 5;

/** Declares a message by its fields. */
export function message<F extends Fields>(fields: F): Message<Of<F>> {
  const named = Object.entries(fields);
  const byNumber = new Map(named.map(([name, field]) => [field.number, { name, field }]));
  const own = {
    fields,
    encode(value: Partial<Of<F>>): Uint8Array {
      const parts: Uint8Array[] = [];
      for (const [name, field] of named) encodeField(parts, field, value[name as keyof F]);
      return Buffer.concat(parts);
    },
    decode: (bytes: Uint8Array): Of<F> => decodeMessage(new Reader(bytes, 0), named, byNumber) as Of<F>,
    decodeAt: (bytes: Uint8Array, depth: number): unknown => decodeMessage(new Reader(bytes, depth), named, byNumber),
  };
  return own;
}

function encodeField(parts: Uint8Array[], field: Field<unknown>, value: unknown): void {
  if (value === undefined) return;
  if (field.isList) for (const each of value as unknown[]) encodeOne(parts, field, each);
  else if (value !== field.absent) encodeOne(parts, field, value);
}

function encodeOne(parts: Uint8Array[], { number, kind }: Field<unknown>, value: unknown): void {
  if (typeof kind === "function" || kind === "bytes" || kind === "string") {
    const body = bodyOf(kind, value);
    parts.push(small(number * 8 + DELIMITED), small(body.length), body);
  } else parts.push(small(number * 8 + VARINT), varint(BigInt(value as number | string | boolean)));
}

function bodyOf(kind: "bytes" | "string" | (() => Message<unknown>), value: unknown): Uint8Array {
  if (typeof kind === "function") return kind().encode(value as object);
  return Buffer.from(value as string, kind === "bytes" ? "latin1" : "utf8");
}

/** Encodes tags and lengths. Most of them fit into one byte. */
const small = (value: number): Uint8Array => (value < 0x80 ? Uint8Array.of(value) : varint(BigInt(value)));

/** Encodes a varint. Negative numbers are encoded as 64-bit two's complement. */
function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(
    bytes: Uint8Array,
    readonly depth: number,
  ) {
    this.#bytes = bytes;
    if (depth > MAX_DEPTH) throw new RangeError(`expected messages nested at most ${MAX_DEPTH} deep`);
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): bigint {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at += 1;
      return BigInt(first);
    }
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new RangeError("expected a number, got the end of the message");
      this.#at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError("expected a varint of at most ten bytes");
  }

  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new RangeError(`expected ${length} bytes, got the end of the message`);
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  delimited(): Uint8Array {
    return this.take(Number(this.varint()));
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === DELIMITED) this.delimited();
    else if (wire === FIXED_64) this.take(8);
    else if (wire === FIXED_32) this.take(4);
    else throw new RangeError(`expected a known wire type, got ${wire}`);
  }
}

type ByNumber = ReadonlyMap<number, { readonly name: string; readonly field: Field<unknown> }>;

function decodeMessage(reader: Reader, named: readonly [string, Field<unknown>][], fields: ByNumber): object {
  const value: Record<string, unknown> = {};
  for (const [name, { isList, absent }] of named) value[name] = isList ? [] : absent;
  while (!reader.isAtEnd) {
    const tag = Number(reader.varint());
    const known = fields.get(tag >>> 3);
    const wire = tag & 7;
    if (known === undefined) {
      reader.skip(wire);
      continue;
    }
    const { name, field } = known;
    if (field.isList) (value[name] as unknown[]).push(...decodeField(reader, field, wire));
    else value[name] = decodeField(reader, field, wire)[0] ?? field.absent;
  }
  return value;
}

/** Decodes a field. Lists of numbers may be packed into one field. */
function decodeField(reader: Reader, { kind, isList }: Field<unknown>, wire: number): unknown[] {
  const isText = kind === "bytes" || kind === "string";
  if (typeof kind === "function" || isText) {
    if (wire !== DELIMITED) throw new RangeError(`expected a length-delimited field, got wire type ${wire}`);
    const body = reader.delimited();
    if (typeof kind !== "function") return [Buffer.from(body).toString(kind === "bytes" ? "latin1" : "utf8")];
    return [(kind() as Nested).decodeAt(body, reader.depth + 1)];
  }
  if (wire === VARINT) return [numberOf(kind, reader.varint())];
  if (wire !== DELIMITED || !isList) throw new RangeError(`expected a number, got wire type ${wire}`);
  const packed = new Reader(reader.delimited(), reader.depth);
  const values: unknown[] = [];
  while (!packed.isAtEnd) values.push(numberOf(kind, packed.varint()));
  return values;
}

interface Nested extends Message<unknown> {
  decodeAt(bytes: Uint8Array, depth: number): unknown;
}

function numberOf(kind: Kind, value: bigint): unknown {
  if (kind === "bool") return value !== 0n;
  if (kind === "unsignedId") return String(value);
  const signed = BigInt.asIntN(64, value);
  return kind === "id" ? String(signed) : Number(signed);
}
