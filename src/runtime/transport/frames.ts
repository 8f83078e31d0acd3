/**
 * Frames: a length of four bytes (big endian, of the rest), a kind of one byte, a body. The dialer of a connection sends
 * `hello` and, once welcomed, `messages`. The acceptor answers with `welcome` or `refuse`, then sends `ack`s. Either side may
 * send `probe`, which the other answers with `alive`.
 */
import { hash } from "../../core/plain.ts";
import { natural, type Shape, type ShapeNode, struct, text } from "../../core/shape.ts";
import { type Codec, codecOf, MalformedBytes, Reader, Writer } from "../wire.ts";
import { differences, type Identity, identityShape } from "./identity.ts";

/**
 * The newest wire version that this release speaks, and the oldest. The version grows when frames, the handshake or the messages
 * between members change, except for messages of algorithms. The rules are in docs/operate/upgrade.md.
 */
export const WIRE_VERSION = 1;
export const OLDEST_WIRE_VERSION = 1;

export const FRAME = { hello: 1, welcome: 2, refuse: 3, messages: 4, ack: 5, probe: 6, alive: 7 } as const;

export const LENGTH_BYTES = 4;
/** The length and kind. */
export const HEADER_BYTES = LENGTH_BYTES + 1;

export interface Hello {
  /** The newest version that the sender speaks. */
  version: number;
  cluster: string;
  /** The result of `protocolHash`. Both ends must interpret the bytes in the same way. */
  protocol: number;
  from: number;
  to: number;
  /** Identifies this run of the process. A restarted process has another number; a higher number does not mean later. */
  incarnation: number;
  /** The oldest version that the sender speaks. */
  oldest: number;
  identity: Identity;
  /** The address at which the sender can be dialed, `host:port`. Empty if unknown. */
  address: string;
}

/** The hash of a protocol, its options, and the message shapes in the order of their declaration. */
export const protocolHash = (protocol: string, shape: ShapeNode): number =>
  hash([protocol, JSON.stringify(shape, (_key, node: unknown) => (isEvolving(node) ? "evolving" : node))]);

/** Excluded from the hash, since each of its variants has a hash of its own on the wire. */
const isEvolving = (node: unknown): boolean =>
  typeof node === "object" && node !== null && (node as ShapeNode).kind === "evolving";

/** Sent to a caller with another protocol. The hashes do not reveal the difference. */
export const OTHER_PROTOCOL =
  "expected the same protocol, options and version of it, got others: for example, only some members have a dataDir, or their timing differs";

export interface Welcome {
  incarnation: number;
  /** The number of the last message received from this run of the dialer. Messages after it are sent again. */
  received: number;
}

export const refusals = [
  "wrong-version",
  "wrong-cluster",
  "wrong-protocol",
  "wrong-node",
  "unknown-node",
  "duplicate-id",
  "wrong-certificate",
  "malformed",
  ...differences,
] as const;
export type Refusal = (typeof refusals)[number];

export interface Refuse {
  reason: Refusal | "unknown";
  detail: string;
  /** The identity of the node that refuses, so that both sides can report the difference. */
  identity: Identity;
}

const MAX_NAME_BYTES = 256;
/** The limit of the address. With it, a hello fits into a stranger's frame limit. */
export const MAX_CALL_BACK_BYTES = 100;
/** Every version begins with these fields, so that a process without a common version can refuse with a reason. */
const helloFields = codecOf<Hello>(
  struct<Hello>({
    version: natural,
    cluster: text(MAX_NAME_BYTES),
    protocol: natural,
    from: natural,
    to: natural,
    incarnation: natural,
    oldest: natural,
    identity: identityShape,
    address: text(MAX_CALL_BACK_BYTES),
  }),
);
export const helloCodec: BodyCodec<Hello> = {
  frame: (hello) => frameOf(FRAME.hello, (into) => helloFields.write(hello, into)),
  /** A later version may append fields, which are skipped. */
  read(from) {
    const hello = helloFields.read(from);
    if (hello.version === WIRE_VERSION) requireEnd(from);
    return hello;
  },
};

type Versions = Pick<Hello, "version" | "oldest">;

/** Why nodes with these versions cannot communicate. Null if they have a version in common. */
export function versionObjection(self: Versions, hello: Versions): string | null {
  if (hello.version >= self.oldest && hello.oldest <= self.version) return null;
  const range = ({ oldest, version }: Versions): string =>
    oldest === version ? `${version}` : `${oldest} to ${version}`;
  return `expected wire version ${range(self)}, got ${range(hello)}: upgrade the members one release at a time`;
}

export const welcomeCodec = bodyCodec<Welcome>(
  FRAME.welcome,
  struct<Welcome>({ incarnation: natural, received: natural }),
);
const MAX_DETAIL_BYTES = 1_024;
const identityCodec = codecOf<Identity>(identityShape);
export const refuseCodec: BodyCodec<Refuse> = {
  frame: ({ reason, detail, identity }) =>
    frameOf(FRAME.refuse, (into) => {
      into.byte(refusals.indexOf(reason as Refusal));
      into.text(detail, MAX_DETAIL_BYTES);
      identityCodec.write(identity, into);
    }),
  /** A later version may have more reasons, and may append fields, which are skipped. */
  read(from) {
    const reason = refusals[from.byte()] ?? ("unknown" as const);
    const detail = from.text(MAX_DETAIL_BYTES);
    return { reason, detail, identity: identityCodec.read(from) };
  },
};
export const ackCodec = bodyCodec<{ received: number }>(FRAME.ack, struct<{ received: number }>({ received: natural }));

/** Writes a body as a whole frame, and reads a body to its end. */
interface BodyCodec<T> {
  frame(body: T): Buffer;
  read(from: Reader): T;
}

function bodyCodec<T>(kind: number, shape: Shape<T>): BodyCodec<T> {
  const codec: Codec<T> = codecOf<T>(shape);
  return {
    frame: (body) => frameOf(kind, (into) => codec.write(body, into)),
    read(from) {
      const body = codec.read(from);
      requireEnd(from);
      return body;
    },
  };
}

function frameOf(kind: number, write: (into: Writer) => void): Buffer {
  const into = new Writer(64);
  openFrame(into, kind);
  write(into);
  return closeFrame(into);
}

function requireEnd(from: Reader): void {
  if (from.position < from.end) throw new MalformedBytes("a frame is longer than its content");
}

export function emptyFrame(kind: number): Buffer {
  const into = new Writer(HEADER_BYTES);
  openFrame(into, kind);
  return closeFrame(into);
}

/** Begins a frame at the writer's start. `closeFrame` fills in its length. */
export function openFrame(into: Writer, kind: number): void {
  into.position = 0;
  into.room(HEADER_BYTES);
  into.position = HEADER_BYTES;
  into.buffer[HEADER_BYTES - 1] = kind;
}

/** The finished frame, as a copy. */
export function closeFrame(into: Writer): Buffer {
  into.buffer.writeUInt32BE(into.position - LENGTH_BYTES, 0);
  return into.bytes();
}

/**
 * Splits a stream of chunks into frames. The bytes of an unfinished frame are kept, up to `maxFrameBytes`, which is called for
 * each frame because strangers have a lower limit than members. `onFrame` gets a reader over the body, which is valid only
 * during the call, and returns false to stop reading.
 */
export function frameSplitter(
  maxFrameBytes: () => number,
  onFrame: (kind: number, body: Reader) => boolean,
): (chunk: Buffer) => void {
  const body = new Reader(Buffer.alloc(0));
  const unfinished = new Writer(0);
  let wanted = LENGTH_BYTES;
  let stopped = false;

  /** Passes on every complete frame of `bytes`. Returns the offset of the unfinished rest. */
  function cut(bytes: Buffer): number {
    let at = 0;
    while (bytes.length - at >= LENGTH_BYTES) {
      const length = bytes.readUInt32BE(at);
      if (length < 1 || length > maxFrameBytes())
        throw new MalformedBytes(`a frame declares ${length} bytes, expected 1 to ${maxFrameBytes()}`);
      wanted = length + LENGTH_BYTES;
      if (bytes.length - at < wanted) return at;
      body.buffer = bytes;
      body.position = at + HEADER_BYTES;
      body.end = at + wanted;
      const kind = bytes[at + LENGTH_BYTES] as number;
      at = body.end;
      if (!onFrame(kind, body)) {
        stopped = true;
        return bytes.length;
      }
    }
    wanted = LENGTH_BYTES;
    return at;
  }

  return function feed(chunk: Buffer): void {
    if (stopped) return;
    let bytes = chunk;
    if (unfinished.position > 0) {
      unfinished.append(chunk);
      if (unfinished.position < wanted) return;
      bytes = unfinished.buffer.subarray(0, unfinished.position);
    }
    const rest = bytes.subarray(cut(bytes));
    unfinished.position = 0;
    if (rest.length > 0) unfinished.append(rest); // If the rest is already in the buffer, it moves to the front.
  };
}
