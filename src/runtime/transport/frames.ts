/**
 * Frames. Each consists of a four-byte length (big endian, excluding the length itself), a one-byte kind and a body.
 * The end that dials a connection sends `hello` and, once welcomed, `messages`. The acceptor answers with `welcome` or
 * `refuse`, then sends `ack`s. Either end may send `probe`, which the other answers with `alive`.
 */
import { hash } from "../../core/plain.ts";
import { natural, type Shape, type ShapeNode, struct, text } from "../../core/shape.ts";
import { type Codec, codecOf, MalformedBytes, Reader, Writer } from "../wire.ts";
import { differences, type Identity, identityShape } from "./identity.ts";

/**
 * The newest wire version that this release supports. The version increases when the frames, the handshake or the
 * messages between members change, except for the messages of algorithms. For the rules, see docs/operate/upgrade.md.
 */
export const WIRE_VERSION = 1;
/** The oldest wire version that this release still supports. */
export const OLDEST_WIRE_VERSION = 1;

/** The number of each kind of frame. */
export const FRAME = { hello: 1, welcome: 2, refuse: 3, messages: 4, ack: 5, probe: 6, alive: 7 } as const;

/** The size of the length field that starts each frame. */
export const LENGTH_BYTES = 4;
/** The combined size of the length and the kind. */
export const HEADER_BYTES = LENGTH_BYTES + 1;

/** The first frame that a dialer sends. */
export interface Hello {
  /** The newest wire version that the sender supports. */
  version: number;
  cluster: string;
  /** The result of `protocolHash`. Both ends must interpret the bytes in the same way. */
  protocol: number;
  from: number;
  to: number;
  /**
   * Identifies this run of the process. A restarted process has a different number, which is not necessarily higher.
   */
  incarnation: number;
  /** The oldest wire version that the sender supports. */
  oldest: number;
  identity: Identity;
  /** The address at which the sender can be dialed, as `host:port`. Empty if unknown. */
  address: string;
}

/** Returns a hash of a protocol, its options, and its message shapes in the order of their declaration. */
export const protocolHash = (protocol: string, shape: ShapeNode): number =>
  hash([protocol, JSON.stringify(shape, (_key, node: unknown) => (isEvolving(node) ? "evolving" : node))]);

/** Whether the shape is excluded from the hash because each of its variants has its own hash on the wire. */
const isEvolving = (node: unknown): boolean =>
  typeof node === "object" && node !== null && (node as ShapeNode).kind === "evolving";

/** The reason sent to a caller with a different protocol. The hashes do not reveal how the protocols differ. */
export const OTHER_PROTOCOL =
  "expected the same protocol, version and options, got different ones: for example, only some members have a dataDir, or they use different timing";

/** The acceptor's reply if it accepts the connection. */
export interface Welcome {
  incarnation: number;
  /** The number of the last message received from this run of the dialer. Later messages are resent. */
  received: number;
}

/** The reasons for a refusal, indexed by their number on the wire. */
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

/** The acceptor's reply if it refuses the connection. */
export interface Refuse {
  reason: Refusal | "unknown";
  detail: string;
  /** The identity of the node that refuses, so that both sides can report the difference. */
  identity: Identity;
}

const MAX_NAME_BYTES = 256;
/**
 * The maximum length of the address. With this limit, a hello fits within the frame limit for unverified connections.
 */
export const MAX_CALL_BACK_BYTES = 100;
/**
 * The first fields of the hello in every version. They allow a process that shares no version with the caller to refuse
 * with a reason.
 */
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
/** Encodes and decodes `hello`. */
export const helloCodec: BodyCodec<Hello> = {
  frame: (hello) => frameOf(FRAME.hello, (into) => helloFields.write(hello, into)),
  /** Skips fields that a later version has appended. */
  read(from) {
    const hello = helloFields.read(from);
    if (hello.version === WIRE_VERSION) requireEnd(from);
    return hello;
  },
};

type Versions = Pick<Hello, "version" | "oldest">;

/** Returns why nodes with these versions cannot communicate, or null if they have a version in common. */
export function versionObjection(self: Versions, hello: Versions): string | null {
  if (hello.version >= self.oldest && hello.oldest <= self.version) return null;
  const range = ({ oldest, version }: Versions): string =>
    oldest === version ? `${version}` : `${oldest} to ${version}`;
  return `expected wire version ${range(self)}, got ${range(hello)}: upgrade the members one release at a time`;
}

/** Encodes and decodes `welcome`. */
export const welcomeCodec = bodyCodec<Welcome>(
  FRAME.welcome,
  struct<Welcome>({ incarnation: natural, received: natural }),
);
const MAX_DETAIL_BYTES = 1_024;
const identityCodec = codecOf<Identity>(identityShape);
/** Encodes and decodes `refuse`. */
export const refuseCodec: BodyCodec<Refuse> = {
  frame: ({ reason, detail, identity }) =>
    frameOf(FRAME.refuse, (into) => {
      into.byte(refusals.indexOf(reason as Refusal));
      into.text(detail, MAX_DETAIL_BYTES);
      identityCodec.write(identity, into);
    }),
  /** Reads a refusal. A later version may know other reasons, and may append fields, which are skipped. */
  read(from) {
    const reason = refusals[from.byte()] ?? ("unknown" as const);
    const detail = from.text(MAX_DETAIL_BYTES);
    return { reason, detail, identity: identityCodec.read(from) };
  },
};
/** Encodes and decodes `ack`. */
export const ackCodec = bodyCodec<{ received: number }>(FRAME.ack, struct<{ received: number }>({ received: natural }));

/** Writes a body as a complete frame, and reads a body to its end. */
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

/** Encodes a frame without a body. */
export function emptyFrame(kind: number): Buffer {
  const into = new Writer(HEADER_BYTES);
  openFrame(into, kind);
  return closeFrame(into);
}

/** Begins a frame at the start of the writer's buffer. `closeFrame` fills in its length. */
export function openFrame(into: Writer, kind: number): void {
  into.position = 0;
  into.room(HEADER_BYTES);
  into.position = HEADER_BYTES;
  into.buffer[HEADER_BYTES - 1] = kind;
}

/** Returns a copy of the finished frame. */
export function closeFrame(into: Writer): Buffer {
  into.buffer.writeUInt32BE(into.position - LENGTH_BYTES, 0);
  return into.bytes();
}

/**
 * Splits a stream of chunks into frames. The bytes of an incomplete frame are buffered, up to `maxFrameBytes`. This is
 * called for each frame, because unverified connections have a lower limit than members. `onFrame` gets a reader for
 * the body, which is valid only during the call, and returns false to stop reading.
 */
export function frameSplitter(
  maxFrameBytes: () => number,
  onFrame: (kind: number, body: Reader) => boolean,
): (chunk: Buffer) => void {
  const body = new Reader(Buffer.alloc(0));
  const unfinished = new Writer(0);
  let wanted = LENGTH_BYTES;
  let stopped = false;

  /** Calls `onFrame` for every complete frame in `bytes`. Returns the offset of the incomplete remainder. */
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
    if (rest.length > 0) unfinished.append(rest); // If the remainder is already in the buffer, moves it to the front.
  };
}
