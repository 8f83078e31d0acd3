/**
 * A connection to a ZooKeeper server. ZooKeeper applies and answers the requests sent over it in order. The connection
 * ends if the server has been silent for too long; pending requests then fail.
 */
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { StoreError } from "./store.ts";
import {
  type Answer,
  connectRequest,
  frame,
  NOTIFICATION,
  OK,
  type OpenedSession,
  PING,
  type Request,
  readAnswer,
  readConnectAnswer,
  readHeader,
  type SessionKey,
  writtenRequest,
} from "./zookeeper-wire.ts";

/** The address of a server. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionRequest {
  readonly tls: ConnectionOptions | undefined;
  readonly timeoutMs: number;
  /** The session to resume. Null: a new session. */
  readonly session: SessionKey | null;
}

/** The time limit for connecting. */
const CONNECT_MS = 1_000;
const PING_MS = 1_000;
/** A connection is abandoned if an answer is outstanding and the server has sent nothing for this long. */
const SILENT_MS = 2_000;
const LOOK_MS = 250;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

interface Asked {
  readonly request: Request;
  readonly xid: number;
  resolve(answer: Answer): void;
  reject(error: StoreError): void;
}

/** An open connection and its session. */
export class ZookeeperConnection {
  /** The session that the server has opened or resumed. */
  readonly session: OpenedSession;
  onWatch: () => void = () => {};
  onEnd: () => void = () => {};
  readonly #socket: Socket;
  readonly #frames: Frames;
  readonly #looking: ReturnType<typeof setInterval>;
  #asked: Asked[] = [];
  #xid = 0;
  #sentAt = performance.now();
  /** Since when an answer has been outstanding and the server has sent nothing. */
  #silentSince = performance.now();
  #isPinged = false;
  #isOver = false;
  #why = "the connection was lost";

  private constructor(socket: Socket, frames: Frames, session: OpenedSession) {
    this.#socket = socket;
    this.#frames = frames;
    this.session = session;
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
    frames.take = (body) => this.#hear(body);
    socket.on("error", ({ message }) => (this.#why = message));
    socket.on("close", () => this.#end());
  }

  /** @throws StoreError */
  static open(place: Place, request: ConnectionRequest): Promise<ZookeeperConnection> {
    return new Promise((resolve, reject) => {
      const { tls } = request;
      const socket = tls === undefined ? connect(place) : connectTls({ ...place, ...tls });
      const fail = (error: Error): void => {
        clearTimeout(timer);
        socket.destroy();
        const { message, reason = message } = error as Error & { reason?: string }; // Use OpenSSL's short reason.
        reject(new StoreError(`zookeeper: ${withPlace(reason, place)}`, false, { cause: error }));
      };
      const timer = setTimeout(() => fail(new Error(`no session within ${CONNECT_MS} ms`)), CONNECT_MS);
      socket.setNoDelay(true);
      socket.on("error", fail);
      socket.on("close", () => fail(new Error("it closed the connection")));
      const frames = new Frames(socket, (body) => {
        clearTimeout(timer);
        const session = readConnectAnswer(body);
        resolve(new ZookeeperConnection(socket, frames, session));
      });
      socket.write(frame(connectRequest(request.timeoutMs, request.session)));
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Sends a request.
   * @throws StoreError if it is not answered. If the server refuses the request, the answer contains the code.
   */
  ask(request: Request): Promise<Answer> {
    if (this.#isOver) return Promise.reject(new StoreError(`zookeeper: ${this.#why}`, false));
    return new Promise((resolve, reject) => {
      if (!this.#isOwed) this.#silentSince = performance.now();
      this.#xid += 1;
      this.#asked.push({ request, xid: this.#xid, resolve, reject });
      this.#send(this.#xid, request);
    });
  }

  /**
   * Sends a request.
   * @throws StoreError if it is not answered, or if the server refuses it with a code other than these
   */
  async done(request: Request, ...codes: readonly number[]): Promise<Answer> {
    const answer = await this.ask(request);
    if (answer.code !== OK && !codes.includes(answer.code)) throw refused(request, answer.code);
    return answer;
  }

  /** Closes the connection. The session continues. */
  end(): void {
    this.#socket.destroy();
    this.#end();
  }

  get #isOwed(): boolean {
    return this.#asked.length > 0 || this.#isPinged;
  }

  #send(xid: number, request: Request): void {
    this.#sentAt = performance.now();
    this.#socket.write(frame(writtenRequest(xid, request)));
  }

  #look(): void {
    const now = performance.now();
    if (this.#isOwed && now - this.#silentSince > SILENT_MS) {
      this.#why = `no answer within ${SILENT_MS} ms`;
      return this.end();
    }
    if (this.#isPinged || now - this.#sentAt < PING_MS) return;
    if (!this.#isOwed) this.#silentSince = now;
    this.#isPinged = true;
    this.#send(PING, { type: "ping" });
  }

  #hear(body: Buffer): void {
    this.#silentSince = performance.now();
    const { xid, zxid, code, rest } = readHeader(body);
    if (xid === NOTIFICATION) return this.onWatch();
    if (xid === PING) {
      this.#isPinged = false;
      return;
    }
    const [asked] = this.#asked;
    if (asked?.xid !== xid) throw new RangeError(`an answer to the unknown request ${xid}`);
    const answer = readAnswer(asked.request, zxid, code, rest);
    this.#asked.shift();
    asked.resolve(answer);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#looking);
    this.#frames.take = () => {};
    for (const { request, reject } of this.#asked) reject(new StoreError(`zookeeper: ${this.#why}`, changes(request)));
    this.#asked = [];
    this.onEnd();
  }
}

/** Splits the bytes from a socket into answers. Destroys the socket if they are invalid. */
class Frames {
  #parts: Buffer[] = [];
  #length = 0;
  #wanted: number | null = null;

  constructor(
    socket: Socket,
    public take: (body: Buffer) => void,
  ) {
    socket.on("data", (data: Buffer) => {
      try {
        this.#add(data);
      } catch (error) {
        socket.destroy(error as Error);
      }
    });
  }

  #add(data: Buffer): void {
    this.#parts.push(data);
    this.#length += data.length;
    for (;;) {
      if (this.#wanted === null) {
        if (this.#length < 4) return;
        this.#wanted = this.#cut(4).readInt32BE();
        if (this.#wanted < 0 || this.#wanted > MAX_ANSWER_BYTES)
          throw new RangeError(`an answer of ${this.#wanted} bytes`);
      }
      if (this.#length < this.#wanted) return;
      const body = this.#cut(this.#wanted);
      this.#wanted = null;
      this.take(body);
    }
  }

  #cut(length: number): Buffer {
    const all = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.#parts = [all.subarray(length)];
    this.#length -= length;
    return all.subarray(0, length);
  }
}

const READS: readonly Request["type"][] = ["get", "stat", "children", "check"];
const changes = (request: Request): boolean =>
  request.type === "multi" ? request.steps.some(changes) : !READS.includes(request.type);

const refused = (request: Request, code: number): StoreError =>
  new StoreError(`zookeeper: ${request.type} was refused with ${code}`, false);

/** Adds the address to an error, unless it is a system error, which already contains it. */
const withPlace = (why: string, { host, port }: Place): string =>
  why.includes(`${host}:${port}`) ? why : `${host}:${port}: ${why}`;
