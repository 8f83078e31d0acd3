/**
 * The part of ZooKeeper's wire format that is used here. Numbers are big-endian. Strings and bytes are preceded by
 * their length, which is -1 for null. The names come from zookeeper.jute. This works with ZooKeeper 3.5 and later,
 * which have `create2` and containers.
 */
import { EnvironmentError } from "../core/errors.ts";

/** A znode's metadata. */
export interface Stat {
  /** The zxids of the znode's creation, of its last change, and of the last change to its list of children. */
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  /** How often the znode has been changed since its creation. */
  readonly version: number;
  /** How many children the znode has ever had. */
  readonly created: number;
}

/**
 * The kind of a znode. `ephemeral`: deleted with the session. `sequential`: a number is appended to its name.
 * `container`: deleted some time after its last child has been deleted.
 */
export type NodeKind = "persistent" | "ephemeral" | "sequential" | "container";

/** A step in a `multi`. A version of -1 matches any version. */
export type Step =
  | { readonly type: "create"; readonly path: string; readonly data: string; readonly kind: NodeKind }
  | { readonly type: "set"; readonly path: string; readonly data: string; readonly version: number }
  | { readonly type: "delete"; readonly path: string; readonly version: number }
  | { readonly type: "check"; readonly path: string; readonly version: number };

export type Request =
  | Step
  | { readonly type: "get"; readonly path: string; readonly isWatched: boolean }
  | { readonly type: "stat"; readonly path: string }
  | { readonly type: "children"; readonly path: string }
  | { readonly type: "multi"; readonly steps: readonly Step[] }
  | { readonly type: "ping" }
  | { readonly type: "closeSession" };

/** An answer. Which fields are present depends on the request. */
export interface Answer {
  /** The zxid of the last change that the server had applied. */
  readonly zxid: number;
  readonly code: number;
  readonly path?: string;
  readonly data?: string;
  readonly stat?: Stat;
  readonly names?: readonly string[];
  readonly results?: readonly Omit<Answer, "zxid">[];
}

/** Identifies a session, and proves that it belongs to this process. */
export interface SessionKey {
  readonly id: bigint;
  readonly password: Buffer;
}
/** A session that a server has opened or resumed. */
export interface OpenedSession extends SessionKey {
  /** The session's timeout. 0: the session has ended. */
  readonly timeoutMs: number;
}

/** The code for success. */
export const OK = 0;
/** The code if the znode does not exist. */
export const NO_NODE = -101;
/** The code if the znode already exists. */
export const NODE_EXISTS = -110;
/** The code if the session has ended. */
export const SESSION_EXPIRED = -112;
/** The `xid` used for notifications, and the one used for pings and their answers. */
export const NOTIFICATION = -1;
export const PING = -2;

const OPCODES = {
  delete: 2,
  stat: 3,
  get: 4,
  set: 5,
  ping: 11,
  children: 12,
  check: 13,
  multi: 14,
  create: 15,
  closeSession: -11,
} as const;
const CREATE_CONTAINER = 19;
const OLDER_CREATE = 1;
const FLAGS: Record<NodeKind, number> = { persistent: 0, ephemeral: 1, sequential: 2, container: 4 };
const ALL_PERMISSIONS = 31;

/**
 * The upper limit for zxids. A smaller number can be represented exactly, and can be stored as a token in locks
 * (`recipes/lock-document.ts`). The limit is high enough for a million epochs.
 */
const MOST_ZXID = 2n ** 52n;

/** Prefixes a body with its length. */
export const frame = (body: Buffer): Buffer => Buffer.concat([int(body.length), body]);

/** Encodes the request that opens or resumes a session. */
export const connectRequest = (timeoutMs: number, session: SessionKey | null): Buffer =>
  Buffer.concat([
    int(0), // The protocol version.
    long(0n), // The last zxid that was seen. Reads check this themselves.
    int(timeoutMs),
    long(session?.id ?? 0n),
    bytes(session?.password ?? Buffer.alloc(16)),
    bool(false), // Do not accept a read-only server, since it has no majority.
  ]);

/** Decodes the answer to `connectRequest`. */
export function readConnectAnswer(body: Buffer): OpenedSession {
  const from = new Reader(body);
  from.int();
  return { timeoutMs: from.int(), id: from.long(), password: from.bytes() };
}

/** Encodes a request. */
export const writtenRequest = (xid: number, request: Request): Buffer =>
  Buffer.concat([int(xid), int(opcode(request)), writtenBody(request)]);

/** Decodes the header of an answer. */
export function readHeader(body: Buffer): { xid: number; zxid: number; code: number; rest: Reader } {
  const rest = new Reader(body);
  return { xid: rest.int(), zxid: rest.zxid(), code: rest.int(), rest };
}

/** Decodes the answer to a request. */
export function readAnswer(request: Request, zxid: number, code: number, rest: Reader): Answer {
  if (code !== OK) return { zxid, code };
  switch (request.type) {
    case "get":
      return { zxid, code, data: rest.bytes().toString("utf8"), stat: rest.stat() };
    case "children":
      return { zxid, code, names: rest.texts(), stat: rest.stat() };
    case "stat":
      return { zxid, code, stat: rest.stat() };
    case "multi":
      return { zxid, code, results: readResults(rest, request.steps.length) };
    default:
      return { zxid, ...readResult(opcode(request), rest) };
  }
}

/**
 * Reads the results of a `multi`. If the `multi` failed, each step has a code, which is 0 for the steps before the one
 * that failed.
 */
function readResults(rest: Reader, count: number): Omit<Answer, "zxid">[] {
  return Array.from({ length: count }, () => {
    const [type, isBehindLast] = [rest.int(), rest.bool()];
    rest.int();
    if (isBehindLast) throw new RangeError("the answer has fewer results than the request");
    return type === -1 ? { code: rest.int() } : readResult(type, rest);
  });
}

/**
 * Reads the result of a step. Within a `multi`, servers may answer a creation in the older format, without a `Stat`.
 */
function readResult(type: number, rest: Reader): Omit<Answer, "zxid"> {
  switch (type) {
    case OLDER_CREATE:
      return { code: OK, path: rest.text() };
    case OPCODES.create:
    case CREATE_CONTAINER:
      return { code: OK, path: rest.text(), stat: rest.stat() };
    case OPCODES.set:
      return { code: OK, stat: rest.stat() };
    case OPCODES.delete:
    case OPCODES.check:
    case OPCODES.closeSession:
      return { code: OK };
    default:
      throw new RangeError(`an answer of unknown type ${type}`);
  }
}

function opcode(request: Request): number {
  return request.type === "create" && request.kind === "container" ? CREATE_CONTAINER : OPCODES[request.type];
}

function writtenBody(request: Request): Buffer {
  switch (request.type) {
    case "create": {
      const anybody = [int(1), int(ALL_PERMISSIONS), text("world"), text("anyone")];
      return Buffer.concat([text(request.path), text(request.data), ...anybody, int(FLAGS[request.kind])]);
    }
    case "set":
      return Buffer.concat([text(request.path), text(request.data), int(request.version)]);
    case "delete":
    case "check":
      return Buffer.concat([text(request.path), int(request.version)]);
    case "get":
      return Buffer.concat([text(request.path), bool(request.isWatched)]);
    case "stat":
    case "children":
      return Buffer.concat([text(request.path), bool(false)]);
    case "multi": {
      const steps = request.steps.flatMap((step) => [int(opcode(step)), bool(false), int(-1), writtenBody(step)]);
      return Buffer.concat([...steps, int(-1), bool(true), int(-1)]);
    }
    case "ping":
    case "closeSession":
      return Buffer.alloc(0);
  }
}

function int(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

function long(value: bigint): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(value);
  return buffer;
}

const bool = (value: boolean): Buffer => Buffer.from([value ? 1 : 0]);
const bytes = (value: Buffer): Buffer => Buffer.concat([int(value.length), value]);
const text = (value: string): Buffer => bytes(Buffer.from(value, "utf8"));

/** Reads values from bytes. Throws if there are too few bytes left. */
export class Reader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  int(): number {
    this.#at += 4;
    return this.#body.readInt32BE(this.#at - 4);
  }

  long(): bigint {
    this.#at += 8;
    return this.#body.readBigInt64BE(this.#at - 8);
  }

  /** @throws EnvironmentError if the number cannot be represented exactly */
  zxid(): number {
    const zxid = this.long();
    if (zxid >= MOST_ZXID)
      throw new EnvironmentError("engine-unavailable", `expected a zxid of ZooKeeper below 2^52, got ${zxid}`);
    return Number(zxid);
  }

  bool(): boolean {
    this.#at += 1;
    return this.#body.readUInt8(this.#at - 1) !== 0;
  }

  bytes(): Buffer {
    const length = Math.max(0, this.int());
    if (this.#at + length > this.#body.length) throw new RangeError("the message is shorter than announced");
    this.#at += length;
    return this.#body.subarray(this.#at - length, this.#at);
  }

  text(): string {
    return this.bytes().toString("utf8");
  }

  texts(): string[] {
    return Array.from({ length: Math.max(0, this.int()) }, () => this.text());
  }

  stat(): Stat {
    const [czxid, mzxid] = [this.zxid(), this.zxid()];
    this.#at += 16; // Skip the times.
    const [version, cversion] = [this.int(), this.int()];
    this.#at += 16; // Skip the ACL version, the owner and the length.
    const children = this.int();
    // On the wire, `cversion` counts how often children were created or deleted, and `children` is their current
    // number.
    return { czxid, mzxid, version, created: (cversion + children) / 2, pzxid: this.zxid() };
  }
}
