/**
 * The datagram format used by `udp-multicast.ts`. The header consists of the two bytes `Co`, a version, a kind, and
 * hashes of the cluster and the protocol, followed by natural numbers: the sender, the run of its process, the number
 * of the datagram, and the members that it excludes. The rest is the body. If the members share a key, the body is
 * encrypted and the whole datagram is authenticated (AES-256-GCM). Each run has its own derived key, so the datagram
 * number is a nonce that is never reused.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { hash } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, type Shape, struct } from "../../core/shape.ts";
import type { RefusedReason } from "../metrics.ts";
import { type Codec, codecOf, MalformedBytes, Reader, Writer } from "../wire.ts";
import { OTHER_PROTOCOL } from "./frames.ts";

/**
 * The version of the format. It increases when the format changes, so that old and new releases do not misread each
 * other's datagrams.
 */
export const DATAGRAM_VERSION = 1;

/**
 * `hello`: the members that the sender receives from. `messages`: the number of the first message, then the messages.
 * `fragment`: the number of the message, the index of the fragment, the number of fragments, and the fragment's bytes.
 */
export const DATAGRAM = { hello: 1, messages: 2, fragment: 3 } as const;
export type DatagramKind = keyof typeof DATAGRAM;
const kinds = new Map<number, DatagramKind>(
  (Object.keys(DATAGRAM) as DatagramKind[]).map((kind) => [DATAGRAM[kind], kind]),
);
/** A flag within the kind: the datagram is sealed with a key. */
const SEALED = 0x80;

const MAGIC = 0x436f;
const PREFIX_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
/** The size of a datagram without its body, unless it excludes many members. */
export const OVERHEAD_BYTES = 64;
const MAX_EXCLUDED = 1_000;
/** The size of the datagram number in the nonce. */
const NUMBER_BYTES = 6;
const MAX_NUMBER = 2 ** (8 * NUMBER_BYTES) - 1;

export interface Header {
  readonly kind: DatagramKind;
  readonly from: NodeId;
  /** Identifies one run of the sender's process. */
  readonly run: number;
  /** A number that is unique among all datagrams from a run. */
  readonly number: number;
  /**
   * Members that must treat this datagram as lost. The fault injector uses this to drop the datagram for individual
   * receivers.
   */
  readonly excluded: readonly NodeId[];
}

export type Objection = readonly [RefusedReason, string];

/** A parsed header, and the offset at which the body starts. */
export interface Opened {
  readonly header: Header;
  readonly isSealed: boolean;
  readonly bodyStart: number;
}

/** A member that the sender receives from, and the run of that member's process. */
export interface Heard {
  node: NodeId;
  run: number;
}

const MAX_HEARD = 1_000;
const heardShape: Shape<Heard[]> = list(struct<Heard>({ node: natural, run: natural }), MAX_HEARD);
/** Encodes and decodes the list in a `hello`. */
export const heardCodec: Codec<Heard[]> = codecOf<Heard[]>(heardShape);

/** The key that seals the datagrams from one run of a process. */
export interface RunKey {
  readonly secret: Uint8Array;
}

/** Encodes this process's datagrams, and decodes those sent by other members. */
export class DatagramFormat {
  readonly #prefix: Buffer;
  readonly #cluster: string;
  readonly #key: string | null;

  /** @param protocol the result of `protocolHash` */
  constructor(options: { cluster: string; protocol: number; key: string | null }) {
    this.#cluster = options.cluster;
    this.#key = options.key;
    this.#prefix = Buffer.alloc(PREFIX_BYTES);
    this.#prefix.writeUInt16BE(MAGIC, 0);
    this.#prefix[2] = DATAGRAM_VERSION;
    this.#prefix.writeUInt32BE(hash(options.cluster) >>> 0, 4);
    this.#prefix.writeUInt32BE(options.protocol >>> 0, 8);
  }

  /** Returns the key for a run, or null if the members do not share a key. */
  keyOf(from: NodeId, run: number): RunKey | null {
    if (this.#key === null) return null;
    const what = `multicast of node ${from}, run ${run}`;
    return { secret: new Uint8Array(hkdfSync("sha256", this.#key, this.#cluster, what, 32)) };
  }

  build({ kind, from, run, number, excluded }: Header, body: Uint8Array, key: RunKey | null): Buffer {
    const into = new Writer(OVERHEAD_BYTES + body.length);
    into.append(this.#prefix);
    into.buffer[3] = DATAGRAM[kind] | (key === null ? 0 : SEALED);
    into.natural(from);
    into.natural(run);
    into.natural(number);
    into.natural(excluded.length);
    for (const node of excluded) into.natural(node);
    const header = into.buffer.subarray(0, into.position);
    if (key === null) return Buffer.concat([header, body]);
    const cipher = createCipheriv("aes-256-gcm", key.secret, nonceOf(number)).setAAD(header);
    return Buffer.concat([header, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
  }

  /**
   * Parses the header, which has not been authenticated yet.
   * @throws MalformedBytes if it is incomplete
   */
  open(datagram: Buffer): Opened | Objection {
    if (datagram.length < PREFIX_BYTES || datagram.readUInt16BE(0) !== MAGIC)
      return ["malformed", "it does not start like a Coterie datagram"];
    if (datagram[2] !== DATAGRAM_VERSION)
      return ["wrong-version", `expected datagrams of version ${DATAGRAM_VERSION}, got ${datagram[2]}`];
    if (datagram.readUInt32BE(4) !== this.#prefix.readUInt32BE(4))
      return ["wrong-cluster", "it belongs to another cluster on the same group and port"];
    if (datagram.readUInt32BE(8) !== this.#prefix.readUInt32BE(8)) return ["wrong-protocol", OTHER_PROTOCOL];
    const first = datagram[3] as number;
    const kind = kinds.get(first & ~SEALED);
    if (kind === undefined) return ["malformed", `its kind ${first & ~SEALED} is unknown`];
    const from = new Reader(datagram, PREFIX_BYTES);
    const header: Header = {
      kind,
      from: from.natural(),
      run: from.natural(),
      number: from.natural(),
      excluded: readExcluded(from),
    };
    if (header.number > MAX_NUMBER) return ["malformed", `its number ${header.number} is out of range`];
    return { header, isSealed: (first & SEALED) !== 0, bodyStart: from.position };
  }

  /**
   * Returns the body, after checking that it was sealed by a member. Without a shared key, returns the body as
   * received.
   */
  body(datagram: Buffer, { header, isSealed, bodyStart }: Opened, key: RunKey | null): Buffer | Objection {
    if (isSealed !== (key !== null))
      return ["forged", isSealed ? "it is sealed, but this member has no key" : "it is not sealed with the shared key"];
    if (key === null) return datagram.subarray(bodyStart);
    const bodyEnd = datagram.length - TAG_BYTES;
    if (bodyEnd < bodyStart) return ["malformed", "it is too short to contain its seal"];
    const decipher = createDecipheriv("aes-256-gcm", key.secret, nonceOf(header.number), { authTagLength: TAG_BYTES })
      .setAAD(datagram.subarray(0, bodyStart))
      .setAuthTag(datagram.subarray(bodyEnd));
    try {
      const body = decipher.update(datagram.subarray(bodyStart, bodyEnd));
      decipher.final();
      return body;
    } catch {
      return ["forged", "its seal does not match: it was made with another key or changed in transit"];
    }
  }
}

/** Whether a datagram was rejected. */
export const isObjection = (opened: Opened | Buffer | Objection): opened is Objection => Array.isArray(opened);

function readExcluded(from: Reader): NodeId[] {
  const count = from.natural();
  if (count > MAX_EXCLUDED)
    throw new MalformedBytes(`${count} members are excluded, but at most ${MAX_EXCLUDED} are allowed`);
  return Array.from({ length: count }, () => from.natural());
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUIntBE(number, NONCE_BYTES - NUMBER_BYTES, NUMBER_BYTES);
  return nonce;
}
