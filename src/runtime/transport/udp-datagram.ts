/**
 * The datagrams of `udp-multicast.ts`. Two bytes `Co`, a version, a kind, hashes of cluster and protocol; then naturals:
 * who sends it, in which run of its process, the number of the datagram, and for which members it is not meant. What follows is
 * the body. With a key that the members share, the body is encrypted and the whole datagram authentic (AES-256-GCM,
 * under a key of its own for each run, so that its number is a nonce that never comes twice).
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { hash } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, type Shape, struct } from "../../core/shape.ts";
import type { RefusedReason } from "../metrics.ts";
import { type Codec, codecOf, MalformedBytes, Reader, Writer } from "../wire.ts";
import { OTHER_PROTOCOL } from "./frames.ts";

/** Grows when the datagrams change, so that old and new do not mistake each other. */
export const DATAGRAM_VERSION = 1;

/**
 * `hello`: the members that the sender hears. `messages`: the number of the first, and as many as there are. `fragment`: number of the
 * message, number of the fragment, how many there are, and its bytes.
 */
export const DATAGRAM = { hello: 1, messages: 2, fragment: 3 } as const;
export type DatagramKind = keyof typeof DATAGRAM;
const kinds = new Map<number, DatagramKind>(
  (Object.keys(DATAGRAM) as DatagramKind[]).map((kind) => [DATAGRAM[kind], kind]),
);
/** Beside the kind: the datagram is sealed with a key. */
const SEALED = 0x80;

const MAGIC = 0x436f;
const PREFIX_BYTES = 12;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
/** What a datagram needs besides its body, unless it excludes many. */
export const OVERHEAD_BYTES = 64;
const MAX_EXCLUDED = 1_000;
/** Numbers have six bytes of the nonce. */
const NUMBER_BYTES = 6;
const MAX_NUMBER = 2 ** (8 * NUMBER_BYTES) - 1;

export interface Header {
  readonly kind: DatagramKind;
  readonly from: NodeId;
  /** Names one run of the sender's process. */
  readonly run: number;
  /** Each datagram of a run has another number, whatever it carries. */
  readonly number: number;
  /** Members that are to take this datagram for lost: how a fault injector reaches single receivers of a multicast. */
  readonly excluded: readonly NodeId[];
}

/** Why a datagram is turned away. */
export type Objection = readonly [RefusedReason, string];

/** A header that has been read, and where its datagram goes on. */
export interface Opened {
  readonly header: Header;
  readonly isSealed: boolean;
  readonly bodyStart: number;
}

/** The members that a member hears: the runs of other members' processes. */
export interface Heard {
  node: NodeId;
  run: number;
}

const MAX_HEARD = 1_000;
const heardShape: Shape<Heard[]> = list(struct<Heard>({ node: natural, run: natural }), MAX_HEARD);
export const heardCodec: Codec<Heard[]> = codecOf<Heard[]>(heardShape);

/** Seals what one run of one process sends. */
export interface RunKey {
  readonly secret: Uint8Array;
}

export class DatagramFormat {
  readonly #prefix: Buffer;
  readonly #cluster: string;
  readonly #key: string | null;

  /** @param protocol what `protocolHash` says. */
  constructor(options: { cluster: string; protocol: number; key: string | null }) {
    this.#cluster = options.cluster;
    this.#key = options.key;
    this.#prefix = Buffer.alloc(PREFIX_BYTES);
    this.#prefix.writeUInt16BE(MAGIC, 0);
    this.#prefix[2] = DATAGRAM_VERSION;
    this.#prefix.writeUInt32BE(hash(options.cluster) >>> 0, 4);
    this.#prefix.writeUInt32BE(options.protocol >>> 0, 8);
  }

  /** Null where the members share no key. */
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

  /** Reads the header, which nobody has vouched for yet. @throws MalformedBytes */
  open(datagram: Buffer): Opened | Objection {
    if (datagram.length < PREFIX_BYTES || datagram.readUInt16BE(0) !== MAGIC)
      return ["malformed", "it does not begin as a datagram of ours"];
    if (datagram[2] !== DATAGRAM_VERSION)
      return ["wrong-version", `expected datagrams of version ${DATAGRAM_VERSION}, got ${datagram[2]}`];
    if (datagram.readUInt32BE(4) !== this.#prefix.readUInt32BE(4))
      return ["wrong-cluster", "it belongs to another cluster on the same group and port"];
    if (datagram.readUInt32BE(8) !== this.#prefix.readUInt32BE(8)) return ["wrong-protocol", OTHER_PROTOCOL];
    const first = datagram[3] as number;
    const kind = kinds.get(first & ~SEALED);
    if (kind === undefined) return ["malformed", `it has the kind ${first & ~SEALED}, which there is not`];
    const from = new Reader(datagram, PREFIX_BYTES);
    const header: Header = {
      kind,
      from: from.natural(),
      run: from.natural(),
      number: from.natural(),
      excluded: readExcluded(from),
    };
    if (header.number > MAX_NUMBER) return ["malformed", `it has the number ${header.number}`];
    return { header, isSealed: (first & SEALED) !== 0, bodyStart: from.position };
  }

  /** The body, once it is certain that a member sealed it; where no key is shared, as it came. */
  body(datagram: Buffer, { header, isSealed, bodyStart }: Opened, key: RunKey | null): Buffer | Objection {
    if (isSealed !== (key !== null))
      return ["forged", isSealed ? "it is sealed, and this member has no key" : "it is not sealed with the shared key"];
    if (key === null) return datagram.subarray(bodyStart);
    const bodyEnd = datagram.length - TAG_BYTES;
    if (bodyEnd < bodyStart) return ["malformed", "it ends before its seal"];
    const decipher = createDecipheriv("aes-256-gcm", key.secret, nonceOf(header.number), { authTagLength: TAG_BYTES })
      .setAAD(datagram.subarray(0, bodyStart))
      .setAuthTag(datagram.subarray(bodyEnd));
    try {
      const body = decipher.update(datagram.subarray(bodyStart, bodyEnd));
      decipher.final();
      return body;
    } catch {
      return ["forged", "its seal does not fit: it was made with another key, or changed on its way"];
    }
  }
}

export const isObjection = (opened: Opened | Buffer | Objection): opened is Objection => Array.isArray(opened);

function readExcluded(from: Reader): NodeId[] {
  const count = from.natural();
  if (count > MAX_EXCLUDED) throw new MalformedBytes(`${count} members are excluded, and ${MAX_EXCLUDED} may be`);
  return Array.from({ length: count }, () => from.natural());
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUIntBE(number, NONCE_BYTES - NUMBER_BYTES, NUMBER_BYTES);
  return nonce;
}
